// The wire form of a schedule: little endian, versioned, compact (variable-length integers), independent of
// the machine's word size and byte order. decode() trusts nothing: any byte string yields either a schedule
// for which validate() holds or an error.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace offpath::schedule {

constexpr std::uint16_t wire_version = 1;
// Limits that decode() enforces before it allocates.
constexpr std::uint32_t max_ops = 1u << 22;
constexpr std::uint32_t max_slots = 1u << 16;

std::vector<std::byte> encode(const Schedule& schedule);
Status decode(std::span<const std::byte> bytes, Schedule& schedule, std::string& problem);

}  // namespace offpath::schedule
