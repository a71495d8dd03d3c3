// Schedules: the tenant that runs instances of plans. Ops become ready, start, move or reduce bytes or run a
// kernel, and enable their successors, until all are done or one has failed.
//
// An instance that fails tells the instances of its peers (Abort), so all of them end. Ownership: a team owns
// its running instances, a plan its idle ones. Threads: the engine's. Fast path: start() and advance() do not
// allocate once a plan has run with the same number of instances in flight.
#pragma once

#include "engine/schedules/compute_ops.h"
#include "engine/schedules/headers.h"
#include "engine/schedules/instance.h"
#include "engine/schedules/plan.h"
#include "engine/schedules/reduce_ops.h"
#include "engine/teams/tenant.h"

#include <deque>
#include <span>
#include <vector>

namespace offpath::engine {

class Schedules final : public Tenant {
  public:
    explicit Schedules(Core& core)
        : Tenant(core),
          compute_ops_(*this, core),
          reduce_ops_(*this, core),
          scratch_(core.config.scratch_kept_bytes) {}

    // The same as Engine::start().
    Status start(Team& team, const Plan& plan, std::uint32_t sequence,
                 std::span<const memory::HostRange> buffers, Completion* done, shared_parts::Word* parts);

    // Tenant
    std::unique_ptr<TeamPart> join(Team& team) override;
    bool on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                    Peer& from) override;
    void cancel(Session& session, Status reason) override;
    void ranks_gone(Team& team, const RanksGone& gone) override;
    std::size_t outstanding(const Session& session) const override;
    void mark_awaited(const Session& session) const override;
    bool advance() override;
    bool finish() override;
    bool has_work() const override {
        return !runnable_.empty() || !finished_.empty() || reduce_ops_.has_work();
    }
    void trim() override;

    // Called by instances, reduce ops and compute ops.
    void transfer_over(Instance& instance, const TransferEnd& end);
    void op_done(Instance& instance, schedule::OpId op);
    void fail(Instance& instance, Status status, bool tell_peers);
    void maybe_finish(Instance& instance);

  private:
    // instance.cpp
    bool run_ready(Instance& instance);
    void start_op(Instance& instance, schedule::OpId op);
    void make_ready(Instance& instance, schedule::OpId op);
    void end(Instance& instance);
    SendTransfer* new_send(Instance& instance, schedule::OpId op, const Location& place, std::uint64_t bytes);
    RecvTransfer* new_recv(Instance& instance, schedule::OpId op, const Location& place, std::uint64_t bytes,
                           Peer& from);
    // exchange.cpp
    void deliver(Instance& instance, std::span<const std::byte> header, std::span<const std::byte> payload);
    void on_ready(Instance& instance, const Ready& ready);
    void on_arrived(Instance& instance, const Arrived& arrived);
    void on_eager(Instance& instance, const Eager& eager, std::span<const std::byte> payload);
    void on_signal(Instance& instance, const Signal& signal);
    void unexpected(Instance& instance, const Routed& message, std::uint64_t tag);
    void launch_send(Instance& instance, schedule::OpId op);
    void start_recv(Instance& instance, schedule::OpId op);
    Routed routed(const Instance& instance, Kind kind, std::uint32_t dest) const {
        return {kind, instance.sequence, instance.team->route_to(dest)};
    }

    ComputeOps compute_ops_;
    ReduceOps reduce_ops_;
    ScratchPool scratch_;
    std::deque<Instance*> runnable_;
    std::vector<Instance*> finished_;
};

}  // namespace offpath::engine
