// Numbers: counts messages by peer and tag. Sender and receiver of a communicator count alike, so the n-th
// receive that names a source and a tag knows by its number which message it will get.
//
// The table is bounded: a tag that came after it was full has no number on that side, on this communicator,
// for ever; counting never starts in the middle. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::mpi::p2p {

class Numbers {
  public:
    static constexpr std::size_t most_entries = 1 << 16;

    // The number of the next message, which is counted. Modulo 2^32.
    std::optional<std::uint32_t> next(int peer, int tag);
    // The latest one was none after all.
    void undo(int peer, int tag);

  private:
    struct Entry {
        std::uint64_t key = 0;  // 0: free
        std::uint32_t count = 0;
    };
    Entry* find(std::uint64_t key);
    void grow();

    std::vector<Entry> entries_;  // a power of two, at most half full
    std::size_t used_ = 0;
    std::size_t latest_ = 0;
};

}  // namespace offpath::mpi::p2p
