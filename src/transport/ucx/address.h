// The address that a UCX transport hands out: UCX's worker address in an envelope with magic, version, length
// and checksum, because UCX trusts what it is given. Pure.
//   magic "OFUX", version u16, UCX's API version u16 (major << 8 | minor), length u32, checksum u64 (FNV-1a),
//   then the worker address. Little endian.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport::ucx {

constexpr std::uint16_t address_version = 1;

std::vector<std::byte> seal_address(std::span<const std::byte> worker_address, std::uint16_t ucx_version);

// The worker address inside, a view into `address`. protocol: not such an address, or damaged; version:
// another address_version. `problem` says which.
Status open_address(std::span<const std::byte> address, std::span<const std::byte>& worker_address,
                    std::string& problem);

}  // namespace offpath::transport::ucx
