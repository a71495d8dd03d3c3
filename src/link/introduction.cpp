#include "link/introduction.h"

#include <cstring>

namespace offpath::link {
namespace {

constexpr char magic[4] = {'O', 'F', 'I', 'N'};
constexpr std::size_t envelope_bytes = 8;

}  // namespace

std::vector<std::byte> join_introduction(const Introduction& introduction) {
    const auto& [address, key] = introduction;
    if (key.empty()) return {address.begin(), address.end()};
    std::vector<std::byte> bytes(envelope_bytes);
    std::memcpy(bytes.data(), magic, sizeof magic);
    for (unsigned i = 0; i < 4; ++i)
        bytes[4 + i] = static_cast<std::byte>(address.size() >> (8 * i));
    bytes.insert(bytes.end(), address.begin(), address.end());
    bytes.insert(bytes.end(), key.begin(), key.end());
    return bytes;
}

Introduction split_introduction(std::span<const std::byte> bytes) {
    if (bytes.size() < envelope_bytes || std::memcmp(bytes.data(), magic, sizeof magic) != 0)
        return {bytes, {}};
    std::size_t length = 0;
    for (unsigned i = 0; i < 4; ++i)
        length |= std::to_integer<std::size_t>(bytes[4 + i]) << (8 * i);
    const auto rest = bytes.subspan(envelope_bytes);
    if (length > rest.size()) return {bytes, {}};
    return {rest.first(length), rest.subspan(length)};
}

}  // namespace offpath::link
