// Marks: what the proxy that owns a window's target notes about each numbered operation of every origin, in
// the memory of the target's rank. They outlive the proxy. So an origin knows which of its operations are
// applied, whatever their order was, and what its last fetching updates have returned.
//
// For each origin: how many fetching updates of at most 8 bytes it has had, the marks and results of the last
// `results` of them, and a ring of 32-bit words. The word of an operation is twice its mark, plus 1 if it is
// applied. An origin has fewer than `outstanding` marked operations at a target that it does not know to be
// done. Threads: one writer; readers of other processes at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace offpath::rma {

class Marks {
  public:
    static constexpr std::uint32_t outstanding = 4096, results = 64;
    static constexpr std::size_t word = sizeof(std::uint64_t);
    static constexpr std::size_t bytes_of_origin = (1 + 2 * results) * word + outstanding * 4;
    static constexpr std::size_t bytes(std::size_t ranks) { return ranks * bytes_of_origin; }

    Marks() = default;
    Marks(std::byte* memory, std::size_t ranks) : memory_(memory), ranks_(ranks) {}

    void begin(std::size_t rank, std::uint32_t mark) {
        if (!keeps(rank, mark)) return;
        set(rank, mark, 0);
        // The word is there before any byte of the operation.
        std::atomic_thread_fence(std::memory_order_release);
    }
    void end(std::size_t rank, std::uint32_t mark) {
        if (keeps(rank, mark)) set(rank, mark, 1);
    }
    // Call it before end().
    void fetched(std::size_t rank, std::uint32_t mark, std::span<const std::byte> value) {
        if (!keeps(rank, mark) || value.empty() || value.size() > sizeof(std::uint64_t)) return;
        std::uint64_t result = 0;
        std::memcpy(&result, value.data(), value.size());
        auto* const words = reinterpret_cast<std::uint64_t*>(memory_ + rank * bytes_of_origin);
        const std::uint64_t at = 1 + words[0] % results * 2;
        std::atomic_ref(words[at]).store(mark, std::memory_order_relaxed);
        std::atomic_ref(words[at + 1]).store(result, std::memory_order_relaxed);
        std::atomic_ref(words[0]).store(words[0] + 1, std::memory_order_release);
    }

    enum class State : std::uint8_t { unknown, begun, applied };
    // `of_origin`: a copy of the origin's part.
    static State state(const std::byte* of_origin, std::uint32_t mark) {
        std::uint32_t noted = 0;
        std::memcpy(&noted, of_origin + offset(mark), sizeof noted);
        if (noted >> 1 != (mark & most)) return State::unknown;
        return (noted & 1) != 0 ? State::applied : State::begun;
    }
    // False: it is not the result of a fetching update, or too many came later.
    static bool value(const std::byte* of_origin, std::uint32_t mark, std::uint64_t& value) {
        for (std::size_t at = 1; at < 1 + 2 * results; at += 2) {
            std::uint64_t of = 0;
            std::memcpy(&of, of_origin + at * word, word);
            if (of != mark) continue;
            std::memcpy(&value, of_origin + (at + 1) * word, word);
            return true;
        }
        return false;
    }

  private:
    static constexpr std::uint32_t most = UINT32_MAX >> 1;
    static constexpr std::size_t offset(std::uint32_t mark) {
        return (1 + 2 * results) * word + mark % outstanding * 4;
    }
    bool keeps(std::size_t rank, std::uint32_t mark) const {
        return memory_ != nullptr && mark != 0 && rank < ranks_;
    }
    void set(std::size_t rank, std::uint32_t mark, std::uint32_t applied) {
        auto* const noted = reinterpret_cast<std::uint32_t*>(memory_ + rank * bytes_of_origin + offset(mark));
        std::atomic_ref(*noted).store(mark << 1 | applied, std::memory_order_release);
    }

    std::byte* memory_ = nullptr;
    std::size_t ranks_ = 0;
};

}  // namespace offpath::rma
