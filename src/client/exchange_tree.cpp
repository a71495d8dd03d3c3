#include "client/exchange_tree.h"

#include "base/log.h"
#include "client/exchange_link.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>

namespace offpath::client {
namespace {

// The pause between two look-ups of an absent parent. It grows with each look-up, and is longer in large
// jobs, where many ranks look.
constexpr std::chrono::milliseconds most_pause{50}, most_pause_per_1000_ranks{100};
constexpr std::chrono::seconds most_rest{1}, explain_after{30};

std::vector<TreePlace::Child> parts(std::uint32_t begin, std::uint32_t end, std::uint32_t fan_out) {
    const std::uint64_t ranks = end - begin;
    const std::uint64_t count = std::min<std::uint64_t>(ranks, fan_out);
    std::vector<TreePlace::Child> result;
    for (std::uint64_t i = 0; i < count; ++i)
        result.push_back({begin + static_cast<std::uint32_t>(ranks * i / count),
                          begin + static_cast<std::uint32_t>(ranks * (i + 1) / count)});
    return result;
}

}  // namespace

TreePlace tree_place(std::uint32_t rank, std::uint32_t size, std::uint32_t fan_out) {
    TreePlace place;
    std::uint32_t at = 0;
    place.end = size;
    while (at != rank) {
        place.parent = at;
        for (const TreePlace::Child& part : parts(at + 1, place.end, fan_out)) {
            if (rank < part.rank || rank >= part.end) continue;
            at = part.rank;
            place.end = part.end;
            break;
        }
    }
    place.children = parts(rank + 1, place.end, fan_out);
    return place;
}

ExchangeTree::ExchangeTree(Board& board, std::uint32_t rank, std::uint32_t size, std::uint32_t fan_out)
    : board_(board), rank_(rank), size_(size), place_(tree_place(rank, size, fan_out)) {}

ExchangeTree::~ExchangeTree() = default;

// Sleeps until a message arrives, or until `until`.
void ExchangeTree::rest(Clock::time_point until) {
    std::vector<pollfd> entries;
    const auto listen = [&](transport::Transport& transport) {
        if (transport.arm() == Status::retry) until = Clock::time_point();
        entries.push_back({transport.event_fd(), POLLIN, 0});
    };
    if (down_ != nullptr) listen(down_->transport());
    if (up_ != nullptr) listen(up_->transport());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (until > Clock::now()) (void)poll(entries.data(), entries.size(), static_cast<int>(left));
}

// A rank of which this one knows that it has not come.
std::uint32_t ExchangeTree::absent() const {
    const bool child_absent = down_ != nullptr && !down_->complete();
    return child_absent ? place_.children[down_->first_absent()].rank : place_.parent;
}

// Warns once. Only one of the ranks that wait for the same rank does so.
void ExchangeTree::explain(Clock::time_point now) {
    if (explained_ || now - begun_ < explain_after) return;
    const bool child_absent = down_ != nullptr && !down_->complete();
    const bool parent_absent = !child_absent && rank_ == place_.parent + 1 && up_ == nullptr;
    if (!child_absent && !parent_absent) return;
    explained_ = true;
    log::warn(Code::ranks_apart, "rank {} has waited {} s for rank {}, which has not called offpath_init",
              rank_, explain_after.count(), absent());
}

// Returns true if the parent is connected, or was called just now.
bool ExchangeTree::reach_parent(Clock::time_point now, Status& status, std::string& problem) {
    if (up_ != nullptr && up_->lost()) {
        up_.reset();
        try_again_ = now + pause_;
    }
    if (up_ != nullptr) return true;
    if (now < try_again_) return false;
    const auto longest = most_pause + most_pause_per_1000_ranks * (size_ / 1000);
    pause_ = std::min(2 * pause_, longest);
    try_again_ = now + pause_;
    std::vector<std::byte> bytes;
    status = board_.look_up(place_.parent, bytes);
    ExchangeRecord record;
    if (status == Status::unavailable || (status == Status::ok && !record.read(bytes))) {
        status = Status::ok;
        return false;
    }
    if (status != Status::ok) {
        problem = "the launcher's server does not tell what ranks have published";
        return false;
    }
    up_ = std::make_unique<Up>();
    status = up_->call(rank_, place_.parent, record, problem);
    const bool called = status == Status::ok;
    if (!called) up_.reset();
    // The call may have failed because the process is gone.
    if (status == Status::unavailable) status = Status::ok;
    return called;
}

Status ExchangeTree::join(std::string& problem, std::chrono::nanoseconds limit) {
    begun_ = Clock::now();
    if (!place_.children.empty()) {
        down_ = std::make_unique<Down>(rank_, place_.children);
        if (Status status = down_->open(problem); status != Status::ok) return status;
        if (Status status = board_.publish(down_->record().bytes()); status != Status::ok) {
            problem = "the launcher's server does not publish for us";
            return status;
        }
    }
    while (true) {
        unsigned events = 0;
        if (down_ != nullptr) events += down_->transport().progress();
        if (up_ != nullptr) events += up_->transport().progress();
        if (down_ != nullptr && !down_->other_version().empty()) {
            problem = down_->other_version();
            return Status::version;
        }
        const auto now = Clock::now();
        explain(now);
        auto until = now + most_rest;
        if (limit.count() > 0) {
            if (now - begun_ > limit) {
                problem = fmt::format("rank {} has not come", absent());
                return Status::unavailable;
            }
            until = std::min(until, begun_ + limit + std::chrono::milliseconds(1));
        }
        // A rank calls its parent only when its whole subtree is present.
        if (down_ != nullptr && !down_->complete()) {
            up_.reset();
        } else if (rank_ == 0) {
            break;
        } else {
            Status status = Status::ok;
            if (!reach_parent(now, status, problem)) until = std::min(until, try_again_);
            if (status != Status::ok) return status;
            if (up_ != nullptr && up_->go()) break;
        }
        if (events == 0) rest(until);
    }
    if (down_ != nullptr && down_->go() != Status::ok) {
        problem = "another process ended while the job came together";
        return Status::peer_lost;
    }
    return Status::ok;
}

template <typename Over, typename Lost>
Status ExchangeTree::wait(Over&& over, Lost&& lost) {
    while (true) {
        unsigned events = 0;
        if (down_ != nullptr) events += down_->transport().progress();
        if (up_ != nullptr) events += up_->transport().progress();
        if (over()) return Status::ok;
        if (lost()) return Status::peer_lost;
        if (events == 0) rest(Clock::now() + most_rest);
    }
}

Status ExchangeTree::gather(std::size_t bytes, std::span<std::byte> all) {
    for (std::size_t i = 0; down_ != nullptr && i < down_->size(); ++i) {
        ExchangeInput& input = down_->input(i);
        const auto lost = [&] { return input.failed || !down_->complete(); };
        if (Status status = wait([&] { return input.complete; }, lost); status != Status::ok) return status;
        const auto [rank, end] = place_.children[i];
        if (!input.take_out(all.subspan(rank * bytes, (end - rank) * bytes))) return Status::protocol;
    }
    if (rank_ == 0) return Status::ok;
    Status status = up_->send(all.subspan(rank_ * bytes, (place_.end - rank_) * bytes));
    if (status != Status::ok) return status;
    const auto lost = [&] { return up_->input.failed || up_->lost(); };
    status = wait([&] { return up_->input.complete && up_->sent(); }, lost);
    return status == Status::ok && !up_->input.take_out(all) ? Status::protocol : status;
}

Status ExchangeTree::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
    std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(rank_ * mine.size()));
    Status status = gather(mine.size(), all);
    if (down_ == nullptr || status != Status::ok) return status;
    for (std::size_t i = 0; i < down_->size() && status == Status::ok; ++i)
        status = down_->send(i, all);
    // A rank that has all records may leave now, whether parent or child.
    const Status sent = wait([&] { return down_->sent(); }, [] { return false; });
    if (status == Status::ok) status = sent;
    return status == Status::ok && down_->send_failed() ? Status::peer_lost : status;
}

}  // namespace offpath::client
