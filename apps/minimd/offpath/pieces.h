// Sends long messages between a host and a device that does not share its memory, in pieces that MPI sends at
// once.
//
// A longer message would need the receiver's answer, and then a call of MPI by the sender, which a host that
// rebuilds its lists does not make. In shared memory, the receiver fetches messages of any length by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace minimd {

constexpr std::int32_t far_piece_bytes = 48 * 1024;  // Open MPI's TCP transport sends up to 64 KiB at once

// Calls call(first, count) for consecutive pieces of `count` elements, in order. There is only one piece if
// `piece_bytes` is 0.
template <typename Call>
void in_pieces(std::size_t count, std::size_t element_bytes, std::int32_t piece_bytes, Call&& call) {
    const std::size_t piece =
        piece_bytes == 0 ? count : static_cast<std::size_t>(piece_bytes) / element_bytes;
    for (std::size_t first = 0; first < count; first += piece)
        call(first, std::min(piece, count - first));
}

}  // namespace minimd
