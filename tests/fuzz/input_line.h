// A line from which the fuzzer's input comes, in pieces whose sizes the input decides. Then it is lost.
#pragma once

#include "target/line.h"

#include <algorithm>

namespace offpath::target {

class InputLine final : public Line {
  public:
    explicit InputLine(std::span<const std::byte> bytes) : rest_(bytes) {}
    std::size_t write(std::span<const std::byte> data) override { return data.size(); }
    std::size_t read(std::span<std::byte> room) override {
        if (rest_.empty()) return 0;
        const std::size_t piece = 1 + (static_cast<std::size_t>(rest_[0]) << 3);
        const std::size_t count = std::min({piece, room.size(), rest_.size()});
        std::copy_n(rest_.begin(), count, room.begin());
        rest_ = rest_.subspan(count);
        return count;
    }
    bool readable() override { return !rest_.empty(); }
    void attend() override {}
    void leave() override {}
    void sleep(std::uint64_t) override {}
    void wake() override {}
    bool drained() override { return true; }
    bool lost() override { return rest_.empty(); }
    void hang_up() override { rest_ = {}; }

  private:
    std::span<const std::byte> rest_;
};

}  // namespace offpath::target
