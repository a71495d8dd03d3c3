// Parts: cuts a call into messages: at most message_segments segments and `most` bytes each. Pure.
#pragma once

#include "rma/operation.h"

#include <vector>

namespace offpath::rma {

struct Part {
    std::uint64_t at = 0;  // of the call's bytes
    std::uint64_t bytes = 0;
    std::vector<Segment> segments;  // at least one
};

class Parts {
  public:
    Parts() = default;
    // `segments` are not empty and have bytes, each; together `bytes`.
    Parts(std::vector<Segment> segments, std::uint64_t bytes);
    bool over() const { return at_ == bytes_; }
    bool contiguous() const { return segments_.size() == 1; }
    // Of at most `most` bytes. Not when it is over.
    Part next(std::uint64_t most);

  private:
    std::vector<Segment> segments_;
    std::uint64_t bytes_ = 0, at_ = 0;
    std::size_t segment_ = 0;
    std::uint64_t inside_ = 0;  // of that segment
};

}  // namespace offpath::rma
