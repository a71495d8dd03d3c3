// MessageNumbers: counts messages by peer and tag. Sender and receiver of a communicator count alike, so the
// number of the n-th receive that names a source and a tag identifies its message.
//
// The table is bounded. A tag that first occurs when it is full never gets numbers on that side of that
// communicator, because counting must not start in the middle. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::mpi::p2p {

class MessageNumbers {
  public:
    static constexpr std::size_t most_entries = 1 << 16;

    // Counts the next message and returns its number, modulo 2^32.
    std::optional<std::uint32_t> next(int peer, int tag) {
        if (!entries_.empty() && entries_[latest_].key == key_of(peer, tag)) return entries_[latest_].count++;
        return next_of_other(key_of(peer, tag));
    }
    // Undoes the latest next(): there was no message.
    void undo(int peer, int tag);
    // Whether next() surely returns a number.
    bool has_room() const { return used_ < most_entries; }

  private:
    struct Entry {
        std::uint64_t key = 0;  // 0: free
        std::uint32_t count = 0;
    };
    static std::uint64_t key_of(int peer, int tag) {
        return (std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | static_cast<std::uint32_t>(tag)) + 1;
    }
    std::optional<std::uint32_t> next_of_other(std::uint64_t key);
    Entry* find(std::uint64_t key);
    void grow();

    std::vector<Entry> entries_;  // a power of two, at most half full
    std::size_t used_ = 0;
    std::size_t latest_ = 0;
};

}  // namespace offpath::mpi::p2p
