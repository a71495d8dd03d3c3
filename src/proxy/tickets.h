// Tickets: whether a job's secret still lets clients in. A secret is made for one job and one moment, both of
// which the client says with its proof. It opens the door for some time after that moment, and no longer than
// until the last client of the job here has left. A rank comes in once.
//
// Ownership: shared by the listener and by every client that came in (TicketUse). Threads: any.
#pragma once

#include "base/status.h"
#include "engine/engine.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace offpath::proxy {

class Tickets;

// That a rank of a job is in. Its end says that the rank has left.
class TicketUse {
  public:
    TicketUse() = default;
    TicketUse(std::shared_ptr<Tickets> tickets, const engine::JobId& job, std::uint32_t rank)
        : tickets_(std::move(tickets)), job_(job), rank_(rank) {}
    TicketUse(TicketUse&&) noexcept = default;
    TicketUse& operator=(TicketUse&& other) noexcept {
        std::swap(tickets_, other.tickets_);
        std::swap(job_, other.job_);
        std::swap(rank_, other.rank_);
        return *this;
    }
    ~TicketUse();

  private:
    std::shared_ptr<Tickets> tickets_;  // null: none
    engine::JobId job_;
    std::uint32_t rank_ = 0;
};

class Tickets : public std::enable_shared_from_this<Tickets> {
  public:
    // How far the clock of a launcher may be ahead of this one.
    static constexpr std::uint64_t clock_seconds = 300;
    static constexpr std::size_t max_ended = 1 << 16;

    explicit Tickets(std::uint64_t seconds) : seconds_(seconds) {}

    // `issued`, `now`: seconds since 1970. access, with the reason: it lets nobody in any more, or the rank
    // is in.
    Status enter(const engine::JobId& job, std::uint32_t rank, std::uint64_t issued, std::uint64_t now,
                 TicketUse& use, std::string& why);

  private:
    friend class TicketUse;
    struct Live {
        std::uint64_t issued = 0;
        std::set<std::uint32_t> ranks;
    };
    void leave(const engine::JobId& job, std::uint32_t rank);
    void forget_old(std::uint64_t now);

    const std::uint64_t seconds_;
    std::mutex mutex_;
    std::map<engine::JobId, Live> live_;
    // Jobs that have ended, for as long as their tickets would be good otherwise. Where they are too many,
    // tickets of this moment or older are refused instead.
    std::map<engine::JobId, std::uint64_t> ended_;
    std::set<std::pair<std::uint64_t, engine::JobId>> ended_by_age_;
    std::uint64_t floor_ = 0;
};

}  // namespace offpath::proxy
