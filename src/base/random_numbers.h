// RandomNumbers: numbers that nobody can guess, for tokens that other processes hold. ChaCha20 fills a buffer
// from a key that comes from the kernel once; each filling begins with the next key, so that numbers already
// given out cannot be computed from what is in memory later. next() makes no system call and allocates
// nothing, the first call apart. Threads: one per object.
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
    // With a seed, numbers that repeat, and that anybody who knows the seed can compute: for runs that have
    // to repeat exactly.
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
