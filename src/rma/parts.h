// Parts: cuts a call into messages of at most message_segments segments and `most` bytes. Pure.
#pragma once

#include "rma/access.h"

#include <vector>

namespace offpath::rma {

struct Part {
    std::uint64_t at = 0;  // offset in the call's bytes
    std::uint64_t bytes = 0;
    std::vector<Segment> segments;  // at least one
};

class Parts {
  public:
    Parts() = default;
    // No segment is empty, and there is at least one. Their sizes add up to `bytes`.
    Parts(std::vector<Segment> segments, std::uint64_t bytes);
    bool over() const { return at_ == bytes_; }
    bool contiguous() const { return segments_.size() == 1; }
    // The next part, of at most `most` bytes. Must not be called when over().
    Part next(std::uint64_t most);

  private:
    std::vector<Segment> segments_;
    std::uint64_t bytes_ = 0, at_ = 0;
    std::size_t segment_ = 0;
    std::uint64_t inside_ = 0;  // of that segment
};

}  // namespace offpath::rma
