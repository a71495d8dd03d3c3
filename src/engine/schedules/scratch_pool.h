// ScratchPool: the scratch slots of running instances. Buffer sizes are powers of two, and any plan may reuse
// a buffer. Many plans that run in turn therefore need no more memory than one. Returned buffers beyond a cap
// are freed. Contents are undefined. Threads: one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace offpath::engine {

class ScratchPool {
  public:
    struct Free {
        void operator()(std::byte* buffer) const { ::operator delete[](buffer, alignment); }
    };
    struct Buffer {
        std::unique_ptr<std::byte[], Free> bytes;
        unsigned size_class = 0;
    };

    explicit ScratchPool(std::uint64_t most_kept) : most_kept_(most_kept) {}

    // Throws std::bad_alloc.
    Buffer take(std::uint64_t bytes) {
        const auto size_class =
            static_cast<unsigned>(std::bit_width((bytes > least_bytes ? bytes : least_bytes) - 1));
        auto& kept = kept_[size_class];
        if (kept.empty()) {
            auto* fresh = static_cast<std::byte*>(::operator new[](std::size_t{1} << size_class, alignment));
            return {std::unique_ptr<std::byte[], Free>(fresh), size_class};
        }
        Buffer buffer{std::move(kept.back()), size_class};
        kept.pop_back();
        bytes_kept_ -= std::uint64_t{1} << size_class;
        return buffer;
    }
    void give_back(Buffer buffer) {
        const std::uint64_t bytes = std::uint64_t{1} << buffer.size_class;
        if (!buffer.bytes || bytes_kept_ + bytes > most_kept_) return;
        bytes_kept_ += bytes;
        kept_[buffer.size_class].push_back(std::move(buffer.bytes));
    }

    void clear() {
        for (auto& kept : kept_)
            std::vector<std::unique_ptr<std::byte[], Free>>().swap(kept);
        bytes_kept_ = 0;
    }

  private:
    static constexpr std::uint64_t least_bytes = 4 << 10;
    static constexpr std::align_val_t alignment{64};
    std::uint64_t most_kept_, bytes_kept_ = 0;
    std::array<std::vector<std::unique_ptr<std::byte[], Free>>, 64> kept_;
};

}  // namespace offpath::engine
