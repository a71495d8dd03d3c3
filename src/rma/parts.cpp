#include "rma/parts.h"

#include <algorithm>
#include <utility>

namespace offpath::rma {

Parts::Parts(std::vector<Segment> segments, std::uint64_t bytes)
    : segments_(std::move(segments)), bytes_(bytes) {}

Part Parts::next(std::uint64_t most) {
    Part part;
    part.at = at_;
    while (at_ < bytes_ && part.bytes < most && part.segments.size() < message_segments) {
        const Segment& segment = segments_[segment_];
        const std::uint64_t now = std::min(segment.bytes - inside_, most - part.bytes);
        part.segments.push_back({segment.offset + inside_, now});
        part.bytes += now;
        at_ += now;
        inside_ += now;
        if (inside_ == segment.bytes) {
            ++segment_;
            inside_ = 0;
        }
    }
    return part;
}

}  // namespace offpath::rma
