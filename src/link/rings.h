// Completions that the device writes into the host's memory, where the way between them is passive: a waiting
// program then finds them by looking, without progress of the link and without its agent. Either side may say
// no; then, and until a first write is known to have arrived, completions are messages (wire.h).
//
// The host's window: what the device writes
//   0  u64 taken    bytes of commands that are taken, in all
//   8  u32 open     not 0: the device writes here
//   64 entries      control::CompletionEntry for each slot: everything but its word, then, when that is
//   there, the
//                   word
// The device's window: what the host writes
//   0  u32 sleepers not 0: threads sleep; completions and room are to be told in messages
//
// Nobody is missed: a host says that it sleeps, waits until that can be seen, and looks once more; the device
// waits until its words can be seen, then looks whether the host sleeps, and if so rings: a message without
// entries. Little endian, fixed sizes. What a peer wrote is checked where it is used.
#pragma once

#include "control/channel.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace offpath::link {

// OFFPATH_RINGS. automatic: by remote memory where that is passive on both sides.
enum class RingsChoice : std::uint8_t { automatic, messages, remote_memory };
// invalid with `problem`.
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
