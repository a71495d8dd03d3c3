// RandomNumbers: unpredictable numbers, for tokens that other processes hold. ChaCha20 fills a buffer from a
// key that the kernel supplies once. Every refill also produces the next key, so memory contents never reveal
// numbers that were already handed out. After the first call, next() makes no system call and allocates
// nothing. Threads: one per object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace offpath {

class RandomNumbers {
  public:
    RandomNumbers() = default;
    // A seed makes the numbers repeatable and predictable. It is for runs that must repeat exactly.
    explicit RandomNumbers(std::optional<std::uint64_t> seed) : seed_(seed) {}
    ~RandomNumbers();
    RandomNumbers(const RandomNumbers&) = delete;
    RandomNumbers& operator=(const RandomNumbers&) = delete;

    std::uint64_t next() {
        if (used_ == numbers_.size()) fill();
        return numbers_[used_++];
    }

  private:
    static constexpr std::size_t key_words = 4;
    void fill();

    std::array<std::uint64_t, 64 + key_words> numbers_{};  // the first ones are the next key
    std::size_t used_ = numbers_.size();
    bool seeded_ = false;
    std::optional<std::uint64_t> seed_;
};

// The first eight bytes, little endian, of HMAC-SHA256 of `message` under `secret`.
std::uint64_t keyed_word(std::span<const std::byte, 32> secret, std::span<const std::byte> message);

}  // namespace offpath
