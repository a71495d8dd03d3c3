// ReplayWindow: which messages of one stream have come. Each number is accepted once. Messages may overtake
// each other by up to `span` numbers; an older one counts as repeated. Memory for numbers that have overtaken
// others is taken when the first one does. Threads: one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::transport::encrypted {

class ReplayWindow {
  public:
    static constexpr std::uint64_t span = 8192;

    // True: the number is new, and counts as come from now on. Call it for authentic messages only.
    bool take(std::uint64_t number) {
        if (number < low_) return false;
        if (number - low_ >= span) slide(number - span + 1);
        if (has(number)) return false;
        if (number == low_) {
            ++low_;
        } else {
            if (words_.empty()) words_.resize(span / bits);
            word(number) |= bit(number);
        }
        for (; has(low_); ++low_)
            word(low_) &= ~bit(low_);
        return true;
    }
    bool has_all(std::uint64_t below) const { return !missed_ && low_ >= below; }
    // Gives the memory back. Numbers below the highest one that has come count as repeated from now on.
    void shrink() {
        int left = 0;
        for (const std::uint64_t each : words_)
            left += std::popcount(each);
        while (left > 0) {
            left -= has(low_) ? 1 : 0;
            slide(low_ + 1);
        }
        words_ = {};
    }

  private:
    static constexpr std::uint64_t bits = 64;
    static std::uint64_t bit(std::uint64_t number) { return std::uint64_t{1} << (number % bits); }
    std::uint64_t& word(std::uint64_t number) { return words_[number % span / bits]; }
    bool has(std::uint64_t number) { return !words_.empty() && (word(number) & bit(number)) != 0; }
    void slide(std::uint64_t low) {
        missed_ = true;  // the lowest number has not come
        if (low - low_ >= span) {
            words_.assign(words_.size(), 0);
            low_ = low;
        }
        for (; low_ < low; ++low_)
            if (!words_.empty()) word(low_) &= ~bit(low_);
    }

    std::uint64_t low_ = 0;  // all lower numbers have come, or are too old
    bool missed_ = false;
    std::vector<std::uint64_t> words_;  // bits of the numbers from low_ on; empty: none has come
};

}  // namespace offpath::transport::encrypted
