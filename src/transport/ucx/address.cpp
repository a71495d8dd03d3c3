#include "transport/ucx/address.h"

#include <fmt/format.h>

#include <cstring>

namespace offpath::transport::ucx {
namespace {

constexpr char magic[4] = {'O', 'F', 'U', 'X'};
constexpr std::size_t envelope_bytes = 4 + 2 + 2 + 4 + 8;

std::uint64_t checksum(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (std::byte byte : bytes)
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ull;
    return hash;
}

void append(std::vector<std::byte>& to, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
        to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t read(std::span<const std::byte> from, std::size_t at, unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i)
        value |= std::to_integer<std::uint64_t>(from[at + i]) << (8 * i);
    return value;
}

}  // namespace

std::vector<std::byte> seal_address(std::span<const std::byte> worker_address, std::uint16_t ucx_version) {
    std::vector<std::byte> address;
    address.reserve(envelope_bytes + worker_address.size());
    for (char letter : magic)
        address.push_back(static_cast<std::byte>(letter));
    append(address, address_version, 2);
    append(address, ucx_version, 2);
    append(address, worker_address.size(), 4);
    append(address, checksum(worker_address), 8);
    address.insert(address.end(), worker_address.begin(), worker_address.end());
    return address;
}

Status open_address(std::span<const std::byte> address, std::span<const std::byte>& worker_address,
                    std::string& problem) {
    if (address.size() < envelope_bytes || std::memcmp(address.data(), magic, sizeof magic) != 0) {
        problem = fmt::format("{} bytes that are no UCX transport's address", address.size());
        return Status::protocol;
    }
    const auto version = read(address, 4, 2);
    if (version != address_version) {
        problem = fmt::format("the address has version {}, this program knows version {}", version,
                              address_version);
        return Status::version;
    }
    const auto inside = address.subspan(envelope_bytes);
    if (read(address, 8, 4) != inside.size()) {
        problem =
            fmt::format("the address announces {} bytes but has {}", read(address, 8, 4), inside.size());
        return Status::protocol;
    }
    if (inside.empty() || read(address, 12, 8) != checksum(inside)) {
        problem = "the address is damaged: its checksum does not agree";
        return Status::protocol;
    }
    worker_address = inside;
    return Status::ok;
}

}  // namespace offpath::transport::ucx
