// A tagged pair: two byte strings joined into one, after four letters that give its type. Pure functions; any
// thread.
#pragma once

#include "base/little_endian.h"

#include <algorithm>
#include <array>
#include <optional>

namespace offpath::link {

using Letters = std::array<char, 4>;

struct TaggedPair {
    std::span<const std::byte> first, second;
};

inline std::vector<std::byte> join_pair(const Letters& letters, const TaggedPair& pair) {
    std::vector<std::byte> bytes;
    for (char letter : letters)
        bytes.push_back(static_cast<std::byte>(letter));
    append_little(bytes, pair.first.size(), 4);
    bytes.insert(bytes.end(), pair.first.begin(), pair.first.end());
    bytes.insert(bytes.end(), pair.second.begin(), pair.second.end());
    return bytes;
}

// Returns views into `bytes`; nothing when they are not such a pair.
inline std::optional<TaggedPair> split_pair(const Letters& letters, std::span<const std::byte> bytes) {
    constexpr std::size_t head = 8;
    const auto same = [](char letter, std::byte byte) { return static_cast<std::byte>(letter) == byte; };
    if (bytes.size() < head || !std::equal(letters.begin(), letters.end(), bytes.begin(), same)) return {};
    const auto rest = bytes.subspan(head);
    const std::uint64_t length = read_little(bytes, 4, 4);
    if (length > rest.size()) return {};
    return TaggedPair{rest.first(length), rest.subspan(length)};
}

}  // namespace offpath::link
