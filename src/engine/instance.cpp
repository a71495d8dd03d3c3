// Running instances of a plan: start, ready ops, completion, failure.
#include "base/log.h"
#include "engine/impl.h"

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::SlotKind;

Status Engine::Impl::start(Team& team, const Plan& plan, std::uint32_t sequence,
                           std::span<const memory::HostRange> buffers, Completion* done) {
    const schedule::Schedule& schedule = plan.schedule();
    if (team.destroyed || sequence != team.next_sequence || buffers.size() != plan.user_slots() ||
        schedule.team_size() != team.peers.size() || schedule.rank() != team.rank) {
        log::error("start {} on team {:x}: expected start {}, {} buffers for a team of {} (got {} for {})",
                   sequence, team.id, team.next_sequence, plan.user_slots(), team.peers.size(),
                   buffers.size(), schedule.team_size());
        return Status::invalid;
    }
    if (team.session->closing) return Status::canceled;

    const auto slots = schedule.slots();
    std::uint64_t scratch_bytes = 0;
    for (const schedule::Slot& slot : slots)
        if (slot.kind == SlotKind::scratch)
            scratch_bytes = std::min(schedule::max_slot_bytes, scratch_bytes + slot.bytes);
    if (scratch_bytes > config.most_scratch_bytes) {
        log::error("start {} on team {:x} wants {} bytes of scratch, {} are allowed", sequence, team.id,
                   scratch_bytes, config.most_scratch_bytes);
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
            instance.scratch.push_back(scratch.take(slots[i].bytes));
            location.pointer = instance.scratch.back().bytes.get();
            continue;
        }
        const memory::HostRange& range = buffers[user++];
        if (range.bytes < slots[i].bytes) {
            log::error("start {} on team {:x}: buffer {} has {} bytes, its slot needs {}", sequence, team.id,
                       user - 1, range.bytes, slots[i].bytes);
            plan.give_back(std::move(owned));
            return Status::access;
        }
        location.memory = team.session->memory;
        location.range = range;
        if (slots[i].bytes > 0) location.pointer = location.memory->direct(range, 0, slots[i].bytes);
    }

    instance.plan = &plan;
    instance.team = &team;
    instance.sequence = sequence;
    instance.done = done;
    instance.status = Status::ok;
    instance.failing = instance.queued = instance.finishing = false;
    instance.left = schedule.ops().size();
    instance.holds = 0;
    instance.runs.resize(instance.left);
    instance.ready.clear();
    instance.signals.clear();
    instance.waits.clear();
    const auto dependencies = schedule.dependency_counts();
    for (OpId op = 0; op < instance.left; ++op) {
        OpRun& run = instance.runs[op];
        run.phase = OpRun::Phase::waiting;
        run.has_ready = run.has_eager = false;
        run.remaining = dependencies[op];
        run.send = nullptr;
        run.recv = nullptr;
        run.pass = nullptr;
        run.kernel_step = 0;
        if (run.remaining == 0) make_ready(instance, op);
    }
    ++team.next_sequence;
    ++counters.instances_started;
    team.instances.emplace(sequence, std::move(owned));

    if (auto early = team.early.find(sequence); early != team.early.end()) {
        std::vector<EarlyMessage> messages = std::move(early->second);
        team.early.erase(early);
        for (const EarlyMessage& message : messages) {
            give_room_back(*team.session->its_job, &team, message.payload.size());
            deliver(instance, message.header, message.payload);
        }
    }
    const auto lost =
        std::find_if(team.peers.begin(), team.peers.end(), [](const Peer* peer) { return peer->lost; });
    if ((lost != team.peers.end() || !team.left.empty()) && instance.left > 0)
        fail(instance, Status::peer_lost, true);
    maybe_finish(instance);
    return Status::in_progress;
}

void Engine::Impl::make_ready(Instance& instance, OpId op) {
    instance.ready.push_back(op);
    if (instance.queued) return;
    instance.queued = true;
    runnable.push_back(&instance);
}

bool Engine::Impl::run_ready(Instance& instance) {
    // Ops that become ready meanwhile are appended and run in the same sweep.
    for (std::size_t i = 0; i < instance.ready.size() && !instance.failing; ++i)
        start_op(instance, instance.ready[i]);
    const bool moved = !instance.ready.empty();
    instance.ready.clear();
    maybe_finish(instance);
    return moved;
}

void Engine::Impl::start_op(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    Team& team = *instance.team;
    OpRun& run = instance.runs[id];
    run.phase = OpRun::Phase::active;
    const Owner owner{Owner::Kind::op, id, &instance, nullptr};
    switch (op.kind) {
        case OpKind::copy: {
            SendTransfer* transfer = new_send(*team.session, owner, locate(instance, op.src), op.bytes);
            transfer->local = true;
            transfer->copy_to = locate(instance, op.dst);
            run.send = transfer;
            begin(*transfer);
            break;
        }
        case OpKind::send:
            launch_send(instance, id);
            break;
        case OpKind::recv:
            start_recv(instance, id);
            break;
        case OpKind::put: {
            if (op.bytes == 0) return op_done(instance, id);
            SendTransfer* transfer = new_send(*team.session, owner, locate(instance, op.src), op.bytes);
            transfer->peer = team.peers[op.peer];
            transfer->awaits_finished = true;
            run.send = transfer;
            const Exchange ask{Kind::put_request, instance.sequence, team.route_to(op.peer), op.dst.slot,
                               op.dst.offset,     op.bytes,          transfer->token};
            tell(*team.peers[op.peer], bytes_of(ask));
            break;
        }
        case OpKind::get: {
            if (op.bytes == 0) return op_done(instance, id);
            RecvTransfer* transfer =
                new_recv(*team.session, owner, locate(instance, op.dst), op.bytes, *team.peers[op.peer]);
            run.recv = transfer;
            const Exchange ask{Kind::get_request, instance.sequence, team.route_to(op.peer), op.src.slot,
                               op.src.offset,     op.bytes,          transfer->token};
            tell(*team.peers[op.peer], bytes_of(ask));
            break;
        }
        case OpKind::signal: {
            const Exchange message{Kind::signal, instance.sequence, team.route_to(op.peer), op.tag, 0, 0, 0};
            tell(*team.peers[op.peer], bytes_of(message));
            op_done(instance, id);
            break;
        }
        case OpKind::wait:
            if (instance.signals[op.tag] >= op.bytes) return op_done(instance, id);
            instance.waits.push_back(id);
            break;
        case OpKind::reduce:
            start_reduce(instance, id);
            break;
        case OpKind::compute:
            kernel_step(instance, id);
            break;
    }
}

void Engine::Impl::op_done(Instance& instance, OpId id) {
    OpRun& run = instance.runs[id];
    run.phase = OpRun::Phase::done;
    --instance.left;
    if (instance.failing) return;
    for (OpId next : instance.plan->schedule().successors(id)) {
        if (--instance.runs[next].remaining == 0) make_ready(instance, next);
    }
    maybe_finish(instance);
}

void Engine::Impl::maybe_finish(Instance& instance) {
    if (instance.finishing || instance.queued || instance.holds > 0) return;
    if (!instance.failing && instance.left > 0) return;
    instance.finishing = true;
    instance.guest_sends.clear();
    instance.guest_recvs.clear();
    finished.push_back(&instance);
}

void Engine::Impl::fail(Instance& instance, Status status, bool tell_peers) {
    if (instance.failing || instance.finishing) return;
    instance.failing = true;
    instance.status = status;
    Team& team = *instance.team;
    log::warn("start {} of team {:x}, rank {}, ends: {}", instance.sequence, team.id, team.rank,
              to_string(status));
    if (tell_peers) {
        for (std::uint32_t rank = 0; rank < team.peers.size(); ++rank) {
            if (rank == team.rank || team.peers[rank]->lost) continue;
            const Exchange message{Kind::abort,
                                   instance.sequence,
                                   team.route_to(rank),
                                   0,
                                   static_cast<std::uint64_t>(static_cast<std::int64_t>(status)),
                                   0,
                                   0};
            tell(*team.peers[rank], bytes_of(message));
        }
    }
    for (OpRun& run : instance.runs) {
        if (run.send != nullptr) kill(run.send);
        if (run.recv != nullptr) kill(run.recv);
        if (run.pass != nullptr) kill(run.pass);
        run.send = nullptr;
        run.recv = nullptr;
        run.pass = nullptr;
    }
    // Those that are over were taken out of the lists when they ended.
    const std::vector<SendTransfer*> guest_sends = std::move(instance.guest_sends);
    const std::vector<RecvTransfer*> guest_recvs = std::move(instance.guest_recvs);
    instance.guest_sends.clear();
    instance.guest_recvs.clear();
    for (SendTransfer* guest : guest_sends)
        kill(guest);
    for (RecvTransfer* guest : guest_recvs)
        kill(guest);
    maybe_finish(instance);
}

}  // namespace offpath::engine
