// Completions that the device writes into the host's memory, where access between them is passive. A waiting
// program then finds them by reading memory, without progress of the link and without its agent. Either side
// may refuse. In that case, and until the first write is known to have arrived, completions are messages
// (wire.h).
//
// The host's window, written by the device:
//   0  u64 taken    bytes of commands taken, in total
//   8  u32 open     not 0: the device writes here
//   64 entries      control::CompletionEntry for each slot: first everything but its word, then, once that
//   has
//                   arrived, the word
// The device's window, written by the host:
//   0  u32 sleepers not 0: threads sleep; completions and room must be reported in messages
//
// No wake-up is lost. A host announces that it sleeps, waits until the announcement is visible, and checks
// once more. The device waits until its words are visible and then reads whether the host sleeps; if so it
// rings with a message without entries. Little endian, fixed sizes. Peer-written values are checked where
// they are used.
#pragma once

#include "control/channel.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace offpath::link {

// OFFPATH_RINGS. automatic: remote memory where it is passive on both sides.
enum class RingsChoice : std::uint8_t { automatic, messages, remote_memory };
// Errors: invalid, with `problem`.
Status rings_choice(RingsChoice& choice, std::string& problem);

static_assert(std::endian::native == std::endian::little);
constexpr std::size_t taken_offset = 0, open_offset = 8, entries_offset = 64;
constexpr std::size_t word_bytes = 4;
constexpr std::size_t device_window_bytes = 64;
constexpr std::size_t host_window_bytes(const control::ChannelSizes& sizes) {
    return entries_offset + sizes.completions * sizeof(control::CompletionEntry);
}
static_assert(offsetof(control::CompletionEntry, word) == 0);

}  // namespace offpath::link
