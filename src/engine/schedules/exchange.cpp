// Messages for instances: planned exchanges (ready, eager), signals, failures.
#include "base/log.h"
#include "engine/schedules/schedules.h"

#include <algorithm>
#include <array>

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;
using schedule::OpKind;

bool Schedules::on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                           Peer& /*from*/) {
    const Kind kind = kind_of(header);
    if (header.size() != schedule_header_bytes(kind)) return false;
    Routed routed{};
    std::memcpy(&routed, header.data(), sizeof routed);
    SchedulesOfTeam& of_team = SchedulesOfTeam::of(team);
    const auto running = of_team.instances.find(routed.sequence);
    if (running != of_team.instances.end()) {
        deliver(*running->second, header, payload);
    } else if (static_cast<std::int32_t>(routed.sequence - of_team.next_sequence) >= 0) {
        if (!core_.take_room(*team.session->its_job, &team, payload.size())) {
            core_.too_far_ahead(team, routed.route.source);
            return true;
        }
        EarlyForInstance& early = of_team.early[routed.sequence].emplace_back();
        std::copy(header.begin(), header.end(), early.bytes.begin());
        early.size = header.size();
        early.payload.assign(payload.begin(), payload.end());
    } else if (kind != Kind::abort) {
        log::debug("a late message of kind {} for start {} of team {:x} was dropped",
                   static_cast<std::uint32_t>(kind), routed.sequence, team.id);
    }
    return true;
}

void Schedules::deliver(Instance& instance, std::span<const std::byte> header,
                        std::span<const std::byte> payload) {
    if (instance.failing || instance.finishing) return;
    Eager eager;
    Ready ready;
    Arrived arrived;
    Signal signal;
    Abort abort;
    switch (kind_of(header)) {
        case Kind::ready:
            if (read(header, ready)) on_ready(instance, ready);
            return;
        case Kind::arrived:
            if (read(header, arrived)) on_arrived(instance, arrived);
            return;
        case Kind::eager:
            if (read(header, eager)) on_eager(instance, eager, payload);
            return;
        case Kind::signal:
            if (read(header, signal)) on_signal(instance, signal);
            return;
        case Kind::abort: {
            if (!read(header, abort)) return;
            const auto status = static_cast<Status>(abort.status);
            return fail(instance, is_error(status) ? status : Status::protocol, false);
        }
        default:
            return;
    }
}

void Schedules::unexpected(Instance& instance, const Routed& message, std::uint64_t tag) {
    log::error(
        Code::unequal_ranks,
        "rank {} sent a message (kind {}, tag {:x}) that start {} of team {:x} does not expect at rank {}",
        message.route.source, static_cast<std::uint32_t>(message.kind), tag, instance.sequence,
        instance.team->id, instance.team->rank);
    fail(instance, Status::protocol, true);
}

void Schedules::on_ready(Instance& instance, const Ready& ready) {
    const OpId op = instance.plan->find_send(ready.to.route.source, ready.tag);
    if (op == Plan::npos || instance.runs[op].has_ready) return unexpected(instance, ready.to, ready.tag);
    OpRun& run = instance.runs[op];
    run.has_ready = true;
    run.remote_token = ready.token;
    run.remote_bytes = ready.bytes;
    run.chunk_limit = ready.chunk_limit;
    run.confirmed = ready.confirms != 0;
    if (run.phase == OpRun::Phase::active) launch_send(instance, op);
}

void Schedules::on_arrived(Instance& instance, const Arrived& arrived) {
    const OpId op = instance.plan->find_send(arrived.to.route.source, arrived.tag);
    if (op == Plan::npos || instance.runs[op].send == nullptr || !instance.runs[op].confirmed)
        return unexpected(instance, arrived.to, arrived.tag);
    core_.mover.confirm(*instance.runs[op].send);
}

void Schedules::on_eager(Instance& instance, const Eager& eager, std::span<const std::byte> payload) {
    const std::uint32_t source = eager.to.route.source;
    const OpId op = instance.plan->find_recv(source, eager.tag);
    if (op == Plan::npos || instance.runs[op].has_eager) return unexpected(instance, eager.to, eager.tag);
    const std::uint64_t expected = instance.plan->schedule().ops()[op].bytes;
    if (payload.size() != expected) {
        log::error(Code::unequal_ranks, "rank {} sent {} bytes where rank {} expects {}", source,
                   payload.size(), instance.team->rank, expected);
        return fail(instance, Status::truncated, true);
    }
    OpRun& run = instance.runs[op];
    run.has_eager = true;
    run.eager.assign(payload.begin(), payload.end());
    if (run.phase == OpRun::Phase::active) start_recv(instance, op);
}

void Schedules::on_signal(Instance& instance, const Signal& signal) {
    const std::uint64_t count = ++instance.signals[signal.id];
    const auto ops = instance.plan->schedule().ops();
    for (std::size_t i = 0; i < instance.waits.size();) {
        const OpId op = instance.waits[i];
        if (ops[op].tag != signal.id || ops[op].bytes > count) {
            ++i;
            continue;
        }
        instance.waits[i] = instance.waits.back();
        instance.waits.pop_back();
        op_done(instance, op);
    }
}

// Called when the op starts, again when the receiver is ready, and again when an eager payload has been
// copied here.
void Schedules::launch_send(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    OpRun& run = instance.runs[id];
    Peer& peer = *instance.team->peers[op.peer];
    if (!peer.self && op.bytes <= eager_bytes) {
        const Eager header{routed(instance, Kind::eager, op.peer), op.tag, op.bytes};
        const Location place = instance.locate(op.src);
        if (op.bytes == 0 || place.pointer != nullptr) {
            core_.peers.tell(peer, bytes_of(header), {place.pointer, op.bytes});
            core_.counters.bytes_sent += op.bytes;
            return op_done(instance, id);
        }
        if (!run.copies && place.memory->reads_at_once(place.range, place.offset, op.bytes)) {
            std::array<std::byte, eager_bytes> copy;
            const Status status = place.read(copy.data(), op.bytes, nullptr);
            if (is_error(status)) return fail(instance, status, true);
            core_.peers.tell(peer, bytes_of(header), {copy.data(), op.bytes});
            core_.counters.bytes_sent += op.bytes;
            return op_done(instance, id);
        }
        // This memory answers later, so its bytes are copied here first. transfer_over() then calls this
        // function again.
        if (run.copies) {
            core_.peers.tell(peer, bytes_of(header), {run.copy.data(), op.bytes});
            core_.counters.bytes_sent += op.bytes;
            return op_done(instance, id);
        }
        run.copy.resize(op.bytes);
        run.send = new_send(instance, id, place, op.bytes);
        run.copies = true;
        return core_.mover.begin_copy(*run.send, Location::at_pointer(run.copy.data()));
    }
    if (!run.has_ready) return;
    if (run.remote_bytes != op.bytes) {
        log::error(Code::unequal_ranks, "rank {} sends {} bytes where rank {} expects {}",
                   instance.team->rank, op.bytes, op.peer, run.remote_bytes);
        return fail(instance, Status::truncated, true);
    }
    run.send = new_send(instance, id, instance.locate(op.src), op.bytes);
    run.send->peer = &peer;
    run.send->remote_token = run.remote_token;
    run.send->chunk_limit = run.chunk_limit;
    run.send->awaits_end = run.confirmed && !peer.self;
    core_.mover.begin(*run.send);
}

// Called when the op starts, and again when an eager payload has arrived.
void Schedules::start_recv(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    OpRun& run = instance.runs[id];
    Peer& peer = *instance.team->peers[op.peer];
    const bool eager = !peer.self && op.bytes <= eager_bytes;
    if (eager && !run.has_eager) return;
    if (eager && op.bytes == 0) return op_done(instance, id);
    run.recv = new_recv(instance, id, instance.locate(op.dst), op.bytes, peer);
    if (eager) return core_.mover.take(*run.recv, run.eager);
    run.confirmed = instance.plan->confirms() && !peer.self && op.bytes >= confirmed_bytes;
    const Ready header{routed(instance, Kind::ready, op.peer),
                       op.tag,
                       op.bytes,
                       run.recv->token,
                       core_.mover.chunk_bytes(),
                       run.confirmed ? 1U : 0U};
    core_.peers.tell(peer, bytes_of(header));
}

}  // namespace offpath::engine
