#include "proxy/tickets.h"

#include <fmt/format.h>

namespace offpath::proxy {

TicketUse::~TicketUse() {
    if (tickets_ != nullptr) tickets_->leave(job_, rank_);
}

Status Tickets::enter(const engine::JobId& job, std::uint32_t rank, std::uint64_t issued, std::uint64_t now,
                      TicketUse& use, std::string& why) {
    std::lock_guard lock(mutex_);
    forget_old(now);
    if (issued > now + clock_seconds) {
        why = fmt::format("its job's secret is of a time {} s from now: the clocks of host and device differ",
                          issued - now);
    } else if (now > issued && now - issued > seconds_) {
        why = fmt::format(
            "its job's secret is {} s old, and good for {} s (do the clocks of host and device agree?)",
            now - issued, seconds_);
    } else if (ended_.contains(job) || issued <= floor_) {
        why = "its job has ended";
    } else if (const auto live = live_.find(job);
               live != live_.end() && (live->second.ranks.contains(rank) || live->second.issued != issued)) {
        why = fmt::format("rank {} of its job is attached", rank);
    } else {
        Live& entry = live_[job];
        entry.issued = issued;
        entry.ranks.insert(rank);
        use = TicketUse(shared_from_this(), job, rank);
        return Status::ok;
    }
    return Status::access;
}

void Tickets::leave(const engine::JobId& job, std::uint32_t rank) {
    std::lock_guard lock(mutex_);
    const auto live = live_.find(job);
    if (live == live_.end()) return;
    live->second.ranks.erase(rank);
    if (!live->second.ranks.empty()) return;
    ended_.emplace(job, live->second.issued);
    ended_by_age_.emplace(live->second.issued, job);
    live_.erase(live);
    if (ended_.size() <= max_ended) return;
    const auto oldest = ended_by_age_.begin();
    floor_ = oldest->first;
    ended_.erase(oldest->second);
    ended_by_age_.erase(oldest);
}

void Tickets::forget_old(std::uint64_t now) {
    while (!ended_by_age_.empty() && now > ended_by_age_.begin()->first &&
           now - ended_by_age_.begin()->first > seconds_) {
        ended_.erase(ended_by_age_.begin()->second);
        ended_by_age_.erase(ended_by_age_.begin());
    }
}

}  // namespace offpath::proxy
