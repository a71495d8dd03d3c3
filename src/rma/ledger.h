// Ledger: words in the memory of the rank that owns a window's target, which say what its proxy has done
// there. They outlive the proxy, so the ranks can finish its work without it:
//
//   word 0              1: the proxy touches the window's memory no more, and accepts nothing
//   word 1 + r          bytes of updates of rank r that it has begun to apply
//   word 1 + ranks + r  bytes of updates of rank r that it has applied
//
// Updates of one rank have an order, so its bytes say which of them are applied. Only if both words differ
// may the last one be applied in part.
//
// Marks (marks.h) may follow the words; they also cover puts. Threads: one writer; readers of other processes
// at any time.
#pragma once

#include "rma/marks.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::rma {

class Ledger {
  public:
    static constexpr std::size_t bytes(std::size_t ranks) { return (1 + 2 * ranks) * sizeof(std::uint64_t); }
    static constexpr std::size_t bytes_with_marks(std::size_t ranks) {
        return bytes(ranks) + Marks::bytes(ranks);
    }

    Ledger() = default;
    Ledger(std::byte* memory, std::size_t ranks, bool with_marks)
        : words_(reinterpret_cast<std::uint64_t*>(memory)), ranks_(ranks) {
        if (with_marks) marks = Marks(memory + bytes(ranks), ranks);
    }
    bool empty() const { return words_ == nullptr; }

    void close() { set(0, 1); }
    // Of updates.
    void begin(std::size_t rank, std::uint64_t update_bytes, std::uint32_t mark) {
        if (rank >= ranks_) return;
        set(1 + rank, words_[1 + rank] + update_bytes);
        // The word is there before any byte of the update.
        std::atomic_thread_fence(std::memory_order_release);
        marks.begin(rank, mark);
    }
    void end(std::size_t rank, std::uint64_t update_bytes, std::uint32_t mark) {
        marks.end(rank, mark);
        if (rank < ranks_) set(1 + ranks_ + rank, words_[1 + ranks_ + rank] + update_bytes);
    }

    Marks marks;

  private:
    void set(std::size_t at, std::uint64_t value) {
        std::atomic_ref(words_[at]).store(value, std::memory_order_release);
    }

    std::uint64_t* words_ = nullptr;
    std::size_t ranks_ = 0;
};

}  // namespace offpath::rma
