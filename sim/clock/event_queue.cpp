#include "sim/clock/event_queue.h"

#include <algorithm>
#include <cmath>

namespace offpath::sim {

namespace {
constexpr std::size_t children = 4;
}

Time from_seconds(double seconds) {
    return static_cast<Time>(std::ceil(seconds * 1e12));
}

Time transfer_time(std::uint64_t bytes, double bytes_per_second) {
    return static_cast<Time>(std::ceil(static_cast<double>(bytes) * 1e12 / bytes_per_second));
}

void EventQueue::at(Time time, Action action, void* object, std::uint64_t argument) {
    const Event event{std::max(time, now_), added_++, action, object, argument};
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0) {
        const std::size_t parent = (at - 1) / children;
        if (!event.before(heap_[parent])) break;
        heap_[at] = heap_[parent];
        at = parent;
    }
    heap_[at] = event;
}

void EventQueue::sift_down(std::size_t at, const Event& event) {
    for (;;) {
        const std::size_t first = at * children + 1;
        if (first >= heap_.size()) break;
        std::size_t least = first;
        for (std::size_t child = first + 1; child < std::min(first + children, heap_.size()); ++child)
            if (heap_[child].before(heap_[least])) least = child;
        if (!heap_[least].before(event)) break;
        heap_[at] = heap_[least];
        at = least;
    }
    heap_[at] = event;
}

bool EventQueue::step() {
    if (heap_.empty()) return false;
    const Event next = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(0, last);
    now_ = next.time;
    ++done_;
    next.action(next.object, next.argument);
    return true;
}

}  // namespace offpath::sim
