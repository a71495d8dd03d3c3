// Tickets: decides whether a job's secret still admits clients. A secret is made for one job at one moment;
// the client states both with its proof. The secret is valid for some time after that moment, but no longer
// than until the job's last client here has left. Each rank may enter once.
//
// Ownership: shared by the listener and by every admitted client (TicketUse). Threads: any.
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

// Records that a rank of a job has been admitted. Its destruction records that the rank has left.
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
    // How far a launcher's clock may be ahead of this one.
    static constexpr std::uint64_t clock_seconds = 300;
    static constexpr std::size_t max_ended = 1 << 16;

    explicit Tickets(std::uint64_t seconds) : seconds_(seconds) {}

    // `issued`, `now`: seconds since 1970. access, with the reason: the secret admits no more clients, or the
    // rank is already in.
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
    // Jobs that have ended, kept while their tickets would otherwise still be valid. If there are too many,
    // all tickets issued at floor_ or earlier are refused instead.
    std::map<engine::JobId, std::uint64_t> ended_;
    std::set<std::pair<std::uint64_t, engine::JobId>> ended_by_age_;
    std::uint64_t floor_ = 0;
};

}  // namespace offpath::proxy
