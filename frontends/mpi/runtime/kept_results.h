// Kept results: copies of the newest short results that all ranks of a communicator have in common. If a
// device is lost, a rank that has its result gives the copy to ranks that have none (departure.h): its
// program may have changed the buffer since.
//
// A copy of the longest result takes about a microsecond. Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace offpath::mpi {

class KeptResults {
  public:
    static constexpr std::size_t longest_bytes = 16 << 10;

    // Keeps nothing of longer results, or without memory. Numbers count a communicator's collectives on the
    // device, from 1.
    void keep(std::uint64_t number, std::span<const std::byte> result) {
        if (result.size() > longest_bytes) return;
        Kept& kept = kept_[next_];  // the oldest
        kept.number = 0;
        try {
            kept.bytes.assign(result.begin(), result.end());
        } catch (const std::bad_alloc&) {
            return;
        }
        kept.number = number;
        next_ = (next_ + 1) % kept_.size();
    }
    // Calls `each` with the number and the bytes, by number.
    void for_each(auto each) const {
        std::array<const Kept*, 4> sorted;
        std::ranges::transform(kept_, sorted.begin(), [](const Kept& kept) { return &kept; });
        std::ranges::sort(sorted, {}, &Kept::number);
        for (const Kept* kept : sorted)
            if (kept->number != 0) each(kept->number, std::span<const std::byte>(kept->bytes));
    }

  private:
    struct Kept {
        std::uint64_t number = 0;  // 0: none
        std::vector<std::byte> bytes;
    };
    std::array<Kept, 4> kept_;
    std::size_t next_ = 0;
};

}  // namespace offpath::mpi
