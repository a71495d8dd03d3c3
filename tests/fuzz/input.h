// Input: takes a fuzzer's bytes piece by piece. Every piece is a copy of exactly its size, so that a
// sanitizer sees a read beyond its end. When the input is used up, what it returns is zero or empty. Threads:
// one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace offpath::fuzz {

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size)
        : rest_(reinterpret_cast<const std::byte*>(data), size) {}

    bool empty() const { return rest_.empty(); }
    template <typename T>
    T take() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        const auto taken = front(sizeof value);
        if (!taken.empty()) std::memcpy(static_cast<void*>(&value), taken.data(), taken.size());
        return value;
    }
    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : take<std::uint16_t>() % limit; }
    std::vector<std::byte> bytes(std::size_t count) {
        const auto taken = front(count);
        return {taken.begin(), taken.end()};
    }

    // A payload whose content matters little: at most 16 bytes of the input, again and again. Taking all of
    // it from the input would leave nothing for the messages behind it.
    std::vector<std::byte> payload(std::size_t count) {
        const auto taken = front(std::min<std::size_t>(count, 16));
        std::vector<std::byte> made(count);
        std::ranges::copy(taken, made.begin());
        // Copies that double in size are many times faster than one byte at a time.
        for (std::size_t done = taken.size(); done != 0 && done < count;) {
            const std::size_t more = std::min(done, count - done);
            std::memcpy(made.data() + done, made.data(), more);
            done += more;
        }
        return made;
    }

  private:
    std::span<const std::byte> front(std::size_t count) {
        const auto taken = rest_.first(std::min(count, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }
    std::span<const std::byte> rest_;
};

// Ends the fuzzer with a finding.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

}  // namespace offpath::fuzz
