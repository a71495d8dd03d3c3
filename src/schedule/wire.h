// The wire form of a schedule: little endian, versioned, compact (variable-length integers), independent of
// the machine's word size and byte order. decode() trusts nothing: any byte string yields either an error or
// a schedule for which validate() holds. The form is canonical: a schedule has one encoding, and decode()
// refuses every other.
//
//   magic "OFPS", version u16, CRC-32 u32 of what follows, then (v: variable-length unsigned integer)
//   v rank, v team_size, v slot count, v op count
//   slots: u8 kind, v bytes
//   ops:   u8 head, the fields that the kind uses (wire.cpp lists them), dependencies
//   a compute op's field is its call: v kernel, v bytes of arguments, these bytes, v number of buffers,
//   and for each buffer v slot, v offset, v bytes, u8 access
// head: bits 0-3: kind. Bit 4: `bytes` equals that of the op before and is omitted. Bits 5-6: number of
// dependencies; 3 means that v (number - 3) follows. Bit 7: 0. A dependency is v zigzag(op - before); they
// ascend by `before`.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace offpath::schedule {

constexpr std::uint16_t wire_version = 2;
// Limits that decode() enforces before it allocates.
constexpr std::uint32_t max_ops = 1u << 22;
constexpr std::uint32_t max_slots = 1u << 16;

// Requires that validate() holds for `schedule`; then decode(encode(s)) == s.
std::vector<std::byte> encode(const Schedule& schedule);
// protocol: not a schedule, damaged or invalid. version: another wire_version. `schedule` is set on ok only.
Status decode(std::span<const std::byte> bytes, Schedule& schedule, std::string& problem);

// Puts magic, version and checksum in front of a handmade body, for tests and the fuzzer.
std::vector<std::byte> seal(std::span<const std::byte> body);

}  // namespace offpath::schedule
