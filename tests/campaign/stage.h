// Stage: the engines of a scenario's proxies, their ranks and windows, a virtual clock, and the faults. It
// remembers whom a fault has hit, so that the judgement of a call knows which errors are excused. Threads:
// one; everything repeats exactly.
#pragma once

#include "gate.h"
#include "scenario.h"
#include "tests/engine/world.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace offpath::campaign {

class VirtualClock final : public Clock {
  public:
    std::uint64_t now_ns() const override { return now_; }
    void pass(std::uint64_t ns) { now_ += ns; }

  private:
    std::uint64_t now_ = 1'000'000;
};

constexpr std::uint64_t round_ns = 1000;
// A proxy that is silent for this long counts as lost.
constexpr std::uint64_t silence_ns = 2'000'000;

// A set of ranks, one bit each.
using RankSet = std::uint32_t;
constexpr RankSet only(std::uint32_t rank) {
    return RankSet{1} << rank;
}

class Stage {
  public:
    // `flaw` is what the network does wrong, to check the campaign itself.
    Stage(const Scenario& scenario, Flaw flaw);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    // One round of all proxies. Time passes, and more of it where nothing moves. Returns whether something
    // moved.
    bool round();
    std::uint64_t now_us() const { return clock_.now_ns() / 1000; }

    std::uint32_t ranks() const { return scenario_.ranks; }
    std::uint32_t proxies() const { return scenario_.proxies; }
    RankSet everybody() const { return only(ranks()) - 1; }
    std::uint32_t proxy_of(std::uint32_t rank) const { return world_->proxy_of(rank); }
    // The rank can make calls.
    bool present(std::uint32_t rank) const { return !leaving_[rank] && world_->is_there(rank); }
    engine::Engine& engine(std::uint32_t rank) { return world_->engine_of(rank); }
    engine::Team& team(std::uint32_t rank) { return world_->team(rank); }
    engine::Session& session(std::uint32_t rank) { return *world_->session(rank); }

    // Faults.
    void close_rank(std::uint32_t rank, Status reason);
    void kill_proxy(std::uint32_t proxy);
    void stop_proxy(std::uint32_t proxy, std::uint64_t ns, bool counts);
    void lose_link(std::uint32_t a, std::uint32_t b);
    void forbid(std::uint32_t rank);
    void send_rubbish(std::uint64_t seed);

    // Whether a fault so far explains that a call of these ranks fails.
    bool excused(RankSet involved) const;
    // Whether nothing of the rank is accessed any more.
    bool gone(std::uint32_t rank) const { return closed_[rank] || !world_->is_there(rank); }
    bool all_closed() const;

  private:
    void beat();
    bool close_some();

    const Scenario scenario_;
    VirtualClock clock_;
    std::uint64_t next_beat_ = 0;
    std::vector<Gate*> gates_;  // by proxy; null: it is dead
    std::unique_ptr<testing::World> world_;
    std::unique_ptr<transport::Transport> stranger_;
    std::vector<transport::Endpoint*> stranger_to_;
    std::vector<bool> leaving_, closed_;
    std::vector<Status> reasons_;
    std::vector<std::uint64_t> go_on_at_;  // by proxy; 0: it runs
    RankSet hit_ = 0;                      // ranks that a fault has hit
    std::vector<RankSet> cut_;             // by proxy: ranks of the proxies that it has lost
    bool sends_fail_ = false;
};

}  // namespace offpath::campaign
