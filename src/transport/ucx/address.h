// The address that a UCX transport hands out: UCX's worker address and the address in the process's own hub.
// UCX trusts what it is given, so an envelope adds magic, version, lengths and checksum. Pure.
//   magic "OFUX", version u16, UCX's version u16 (major << 8 | minor), length of the worker address u32,
//   length of the local address u32, checksum u64 (FNV-1a of all that follows), the process (6 u64, in the
//   order of Process), worker address, local address. Little endian.
#pragma once

#include "base/status.h"
#include "transport/ucx/process.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport::ucx {

constexpr std::uint16_t address_version = 1;

struct Address {
    std::span<const std::byte> worker;
    std::span<const std::byte> local;  // empty: not reachable inside its process
    Process process;
};

std::vector<std::byte> seal_address(const Address& address, std::uint16_t ucx_version);

// Returns views into `bytes`. protocol: not such an address, or damaged. version: another address_version.
// `problem` says which.
Status open_address(std::span<const std::byte> bytes, Address& address, std::string& problem);

}  // namespace offpath::transport::ucx
