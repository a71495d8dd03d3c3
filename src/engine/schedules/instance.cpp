// Running instances of a plan: start, ready ops, completion, failure.
#include "base/log.h"
#include "engine/schedules/schedules.h"

#include <algorithm>

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::SlotKind;

Status Schedules::start(Team& team, const Plan& plan, std::uint32_t sequence,
                        std::span<const memory::HostRange> buffers, Completion* done,
                        shared_parts::Word* parts) {
    const schedule::Schedule& schedule = plan.schedule();
    SchedulesOfTeam& of_team = SchedulesOfTeam::of(team);
    if (team.destroyed || sequence != of_team.next_sequence || buffers.size() != plan.user_slots() ||
        schedule.team_size() != team.peers.size() || schedule.rank() != team.rank) {
        log::error(Code::unequal_ranks,
                   "start {} on team {:x}: expected start {}, {} buffers for a team of {} (got {} for {})",
                   sequence, team.id, of_team.next_sequence, plan.user_slots(), team.peers.size(),
                   buffers.size(), schedule.team_size());
        return Status::invalid;
    }
    if (team.session->closing) return Status::canceled;

    const auto slots = schedule.slots();
    std::uint64_t scratch_bytes = 0;
    for (const schedule::Slot& slot : slots)
        if (slot.kind == SlotKind::scratch)
            scratch_bytes = std::min(schedule::max_slot_bytes, scratch_bytes + slot.bytes);
    if (scratch_bytes > core_.config.most_scratch_bytes) {
        log::error(Code::limit, "start {} on team {:x} wants {} bytes of scratch, {} are allowed", sequence,
                   team.id, scratch_bytes, core_.config.most_scratch_bytes);
        return Status::memory;
    }
    std::unique_ptr<Instance> owned = plan.take();
    Instance& instance = *owned;
    instance.scratch.clear();
    instance.slots.resize(slots.size());
    std::size_t user = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        Location& location = instance.slots[i];
        location = Location{};
        if (slots[i].kind == SlotKind::scratch) {
            if (slots[i].bytes == 0) continue;
            instance.scratch.push_back(scratch_.take(slots[i].bytes));
            location.pointer = instance.scratch.back().bytes.get();
            continue;
        }
        const memory::HostRange& range = buffers[user++];
        if (range.bytes < slots[i].bytes) {
            log::error(Code::unequal_ranks,
                       "start {} on team {:x}: buffer {} has {} bytes, its slot needs {}", sequence, team.id,
                       user - 1, range.bytes, slots[i].bytes);
            plan.give_back(std::move(owned));
            return Status::access;
        }
        location = Location::of(*team.session->memory, range);
    }

    instance.home = this;
    instance.plan = &plan;
    instance.team = &team;
    instance.sequence = sequence;
    instance.done = done;
    instance.parts = parts;
    instance.status = Status::ok;
    instance.failing = instance.queued = instance.finishing = false;
    instance.left = schedule.ops().size();
    instance.holds = 0;
    instance.runs.resize(instance.left);
    instance.kernels.resize(schedule.calls().size());
    instance.ready.clear();
    instance.signals.clear();
    instance.waits.clear();
    const auto dependencies = schedule.dependency_counts();
    for (OpId op = 0; op < instance.left; ++op) {
        OpRun& run = instance.runs[op];
        run.phase = OpRun::Phase::waiting;
        run.has_ready = run.has_eager = run.confirmed = false;
        run.remaining = dependencies[op];
        run.send = nullptr;
        run.recv = nullptr;
        run.pass = nullptr;
        run.copies = false;
        if (run.remaining == 0) make_ready(instance, op);
    }
    ++of_team.next_sequence;
    ++core_.counters.instances_started;
    of_team.instances.emplace(sequence, std::move(owned));

    if (auto early = of_team.early.find(sequence); early != of_team.early.end()) {
        std::vector<EarlyForInstance> messages = std::move(early->second);
        of_team.early.erase(early);
        for (const EarlyForInstance& message : messages) {
            core_.give_room_back(*team.session->its_job, &team, message.payload.size());
            deliver(instance, message.header(), message.payload);
        }
    }
    const auto lost =
        std::find_if(team.peers.begin(), team.peers.end(), [](const Peer* peer) { return peer->lost; });
    if ((lost != team.peers.end() || !team.left.empty()) && instance.left > 0)
        fail(instance, Status::peer_lost, true);
    maybe_finish(instance);
    return Status::in_progress;
}

void Schedules::make_ready(Instance& instance, OpId op) {
    instance.ready.push_back(op);
    if (instance.queued) return;
    instance.queued = true;
    runnable_.push_back(&instance);
}

bool Schedules::run_ready(Instance& instance) {
    // Ops that become ready meanwhile are appended and run in the same sweep.
    for (std::size_t i = 0; i < instance.ready.size() && !instance.failing; ++i)
        start_op(instance, instance.ready[i]);
    const bool moved = !instance.ready.empty();
    instance.ready.clear();
    maybe_finish(instance);
    return moved;
}

SendTransfer* Schedules::new_send(Instance& instance, OpId op, const Location& place, std::uint64_t bytes) {
    ++instance.holds;
    SendTransfer* transfer = core_.mover.new_send(*instance.team->session, instance, op, place, bytes);
    transfer->ends_are_told = true;
    return transfer;
}

RecvTransfer* Schedules::new_recv(Instance& instance, OpId op, const Location& place, std::uint64_t bytes,
                                  Peer& from) {
    ++instance.holds;
    return core_.mover.new_recv(*instance.team->session, instance, op, place, bytes, from);
}

void Schedules::start_op(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    OpRun& run = instance.runs[id];
    run.phase = OpRun::Phase::active;
    switch (op.kind) {
        case OpKind::copy:
            run.send = new_send(instance, id, instance.locate(op.src), op.bytes);
            if (id == instance.plan->shared_copy()) run.send->parts = instance.parts;
            return core_.mover.begin_copy(*run.send, instance.locate(op.dst));
        case OpKind::send:
            return launch_send(instance, id);
        case OpKind::recv:
            return start_recv(instance, id);
        case OpKind::signal:
            core_.peers.tell(*instance.team->peers[op.peer],
                             bytes_of(Signal{routed(instance, Kind::signal, op.peer), op.tag}));
            return op_done(instance, id);
        case OpKind::wait:
            if (instance.signals[op.tag] >= op.bytes) return op_done(instance, id);
            instance.waits.push_back(id);
            return;
        case OpKind::reduce:
            return reduce_ops_.start(instance, id);
        case OpKind::compute:
            return compute_ops_.start(instance, id);
    }
}

void Instance::transfer_over(const TransferEnd& end) {
    home->transfer_over(*this, end);
}

void Schedules::transfer_over(Instance& instance, const TransferEnd& end) {
    --instance.holds;
    if (end.dead) return maybe_finish(instance);
    const auto id = static_cast<OpId>(end.tag);
    OpRun& run = instance.runs[id];
    (end.sent ? static_cast<void>(run.send = nullptr) : static_cast<void>(run.recv = nullptr));
    if (is_error(end.status)) return fail(instance, end.status, true);
    const schedule::Op& op = instance.plan->schedule().ops()[id];
    const OpKind kind = op.kind;
    if (!end.sent && kind == OpKind::recv && run.confirmed)
        core_.peers.tell(*instance.team->peers[op.peer],
                         bytes_of(Arrived{routed(instance, Kind::arrived, op.peer), op.tag}));
    if (end.sent && kind == OpKind::send && run.copies) return launch_send(instance, id);
    op_done(instance, id);
}

void Schedules::op_done(Instance& instance, OpId id) {
    OpRun& run = instance.runs[id];
    run.phase = OpRun::Phase::done;
    --instance.left;
    if (instance.failing) return;
    for (OpId next : instance.plan->schedule().successors(id)) {
        if (--instance.runs[next].remaining == 0) make_ready(instance, next);
    }
    maybe_finish(instance);
}

void Schedules::maybe_finish(Instance& instance) {
    if (instance.finishing || instance.queued || instance.holds > 0) return;
    if (!instance.failing && instance.left > 0) return;
    instance.finishing = true;
    finished_.push_back(&instance);
}

void Schedules::fail(Instance& instance, Status status, bool tell_peers) {
    if (instance.failing || instance.finishing) return;
    instance.failing = true;
    instance.status = status;
    Team& team = *instance.team;
    log::warn(Code::operation, "start {} of team {:x}, rank {}, ends: {}", instance.sequence, team.id,
              team.rank, to_string(status));
    if (tell_peers) {
        for (std::uint32_t rank = 0; rank < team.peers.size(); ++rank) {
            if (rank == team.rank || team.peers[rank]->lost) continue;
            const Abort message{routed(instance, Kind::abort, rank), static_cast<std::int64_t>(status)};
            core_.peers.tell(*team.peers[rank], bytes_of(message));
        }
    }
    for (OpRun& run : instance.runs) {
        if (run.send != nullptr) core_.mover.kill(run.send);
        if (run.recv != nullptr) core_.mover.kill(run.recv);
        if (run.pass != nullptr) reduce_ops_.kill(run.pass);
        run.send = nullptr;
        run.recv = nullptr;
        run.pass = nullptr;
    }
    for (const auto& kernel : instance.kernels)
        if (kernel != nullptr) ComputeOps::kill(*kernel);
    maybe_finish(instance);
}

}  // namespace offpath::engine
