// What must hold at the end of a play.
#include "play.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::campaign {

void Play::judge() {
    for (const auto& actor : actors_)
        wrong(fmt::format("{} never ends", actor->text()));
    for (const Call& call : calls_) {
        if (!call.status) {
            if (!call.must_end()) continue;
            wrong(fmt::format("{} (rank {}, {}) never ends", call.number, call.rank, call.text));
            continue;
        }
        if (call.status == call.expected && call.check)
            if (const std::string what = call.check(); !what.empty())
                wrong(fmt::format("{} (rank {}, {}): {}", call.number, call.rank, call.text, what));
    }
    judge_additions();
}

// Each addition is made exactly once, or, where its call failed, at most once. What was fetched is different
// each time.
void Play::judge_additions() {
    for (std::uint32_t target = 0; target < stage_.ranks(); ++target)
        for (std::size_t counter = 0; counter <= WindowMemory::counters; ++counter) {
            Additions& made = additions_[target][counter];
            if (made.calls.empty()) continue;
            const auto sure = static_cast<std::uint64_t>(
                std::ranges::count_if(made.calls, [](const Call* call) { return call->well(); }));
            std::uint64_t value = 0;
            std::memcpy(&value, windows_[target].bytes.data() + counter * 8, 8);
            if (value < sure || value > made.calls.size())
                wrong(fmt::format("counter {} of rank {} is {} after {} additions, {} of them sure", counter,
                                  target, value, made.calls.size(), sure));
            std::ranges::sort(made.fetched);
            if (std::ranges::adjacent_find(made.fetched) != made.fetched.end())
                wrong(fmt::format("counter {} of rank {}: a value was fetched twice", counter, target));
        }
}

void Play::end_windows() {
    std::vector<Call*> ends;
    for (std::uint32_t rank = 0; rank < stage_.ranks(); ++rank) {
        if (!stage_.present(rank) || windows_[rank].window == nullptr) continue;
        Call& end = call(rank, stage_.everybody(), "its window ends");
        ends.push_back(&end);
        began(end, stage_.engine(rank).destroy_window(*windows_[rank].window, &end));
    }
    settle([this] { return over(); });
    for (const Call* end : ends) {
        if (!end->status && !stage_.gone(end->rank))
            wrong(fmt::format("the window of rank {} never ends", end->rank));
        if (end->status) windows_[end->rank].at_end = windows_[end->rank].bytes;
    }
}

void Play::end_sessions() {
    const bool all_over =
        std::ranges::all_of(calls_, [](const Call& call) { return call.status || call.abandoned; });
    // What was begun for a proxy that has given this one up ends when this one hears of it.
    const auto left = [this](std::uint32_t rank) {
        return stage_.present(rank) ? stage_.engine(rank).outstanding(stage_.session(rank)) : 0;
    };
    const auto any_left = [&] {
        for (std::uint32_t rank = 0; rank < stage_.ranks(); ++rank)
            if (left(rank) > 0) return true;
        return false;
    };
    if (all_over) settle([&] { return !any_left(); });
    for (std::uint32_t rank = 0; rank < stage_.ranks(); ++rank) {
        if (all_over && left(rank) > 0)
            wrong(fmt::format("rank {} has {} operations although all calls are over", rank, left(rank)));
        stage_.close_rank(rank, Status::canceled);
    }
    if (!settle([this] { return stage_.all_closed(); })) wrong("a session does not close");
    // What still travels must not touch anything.
    for (int i = 0; i < 100; ++i)
        stage_.round();
    for (const Call& call : calls_)
        if (const std::string what = difference(call.written, call.at_end); !what.empty())
            wrong(fmt::format("{} ({}): its memory was written to after its end: {}", call.number, call.text,
                              what));
    for (std::uint32_t rank = 0; rank < stage_.ranks(); ++rank) {
        const WindowMemory& window = windows_[rank];
        if (window.at_end.empty()) continue;
        if (const std::string what = difference(window.bytes, window.at_end); !what.empty())
            wrong(fmt::format("the window of rank {} was written to after its end: {}", rank, what));
    }
}

}  // namespace offpath::campaign
