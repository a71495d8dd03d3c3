#include "sim/servers/link.h"

#include <algorithm>
#include <cmath>

namespace offpath::sim {

Link::Passage Link::pass(std::uint64_t bytes, Time tail) {
    const Time length = transfer_time(bytes, rate_);
    const Time now = queue_.now();
    const Time earliest = now > burst_ ? now - burst_ : 0;  // a full bucket
    const Time begin = std::max(earliest, free_at_);
    free_at_ = begin + length;
    // A slower link before this one keeps this one waiting for the last byte.
    const Time end = std::max({free_at_, now, tail});
    if (burst_ == 0) free_at_ = end;
    busy_ += length;
    bytes_ += bytes;
    return {std::max(begin, now) + latency_, end + latency_};
}

void Link::share(std::uint64_t bytes, EventQueue::Action action, void* object, std::uint64_t argument) {
    settle();
    bytes_ += bytes;
    flows_.push({served_ + static_cast<double>(std::max<std::uint64_t>(bytes, 1)), order_++, action, object,
                 argument});
    plan();
}

void Link::settle() {
    const Time passed = queue_.now() - settled_at_;
    settled_at_ = queue_.now();
    if (flows_.empty()) return;
    busy_ += passed;
    served_ += seconds_of(passed) * rate_ / static_cast<double>(flows_.size());
}

void Link::plan() {
    ++generation_;
    if (flows_.empty()) {
        served_ = 0;
        return;
    }
    const double left = std::max(0.0, flows_.top().ends_at - served_);
    queue_.after(from_seconds(left * static_cast<double>(flows_.size()) / rate_), &Link::look, this,
                 generation_);
}

void Link::look(void* self, std::uint64_t generation) {
    auto& link = *static_cast<Link*>(self);
    if (generation != link.generation_) return;
    link.settle();
    constexpr double tolerance = 1e-3;  // of a byte: times are whole picoseconds
    std::vector<Flow> over;
    while (!link.flows_.empty() && link.flows_.top().ends_at <= link.served_ + tolerance) {
        over.push_back(link.flows_.top());
        link.flows_.pop();
    }
    link.plan();
    for (const Flow& flow : over)
        link.queue_.after(link.latency_, flow.action, flow.object, flow.argument);
}

}  // namespace offpath::sim
