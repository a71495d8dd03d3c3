// Messages between engines: planned exchanges (ready, eager), signals, puts and gets, and what they do to
// instances.
#include "base/log.h"
#include "engine/onesided.h"

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;
using schedule::OpKind;

void Engine::Impl::dispatch(std::span<const std::byte> bytes, const transport::Incoming* incoming,
                            Peer& from) {
    const Kind kind = kind_of(bytes);
    if (kind == Kind::chunk) {
        Chunk chunk;
        if (incoming != nullptr && read(bytes, chunk) && incoming->bytes == chunk.bytes)
            return on_chunk(chunk, *incoming, from);
    } else if (kind == Kind::one_sided_bundle && incoming != nullptr) {
        return one_sided->take_bundle(bytes, *incoming, from);
    } else if (incoming != nullptr && incoming->rendezvous != nullptr) {
        transport.discard(incoming->rendezvous);  // nothing else comes that way
        log::warn("a message of kind {} with a payload of {} bytes was dropped",
                  static_cast<std::uint32_t>(kind), incoming->bytes);
        return;
    } else if (kind == Kind::one_sided || kind == Kind::one_sided_answer) {
        return one_sided->dispatch(bytes, incoming, from);
    } else if (kind == Kind::grant) {
        Grant grant;
        if (read(bytes, grant)) return on_grant(grant, from);
    } else if (kind == Kind::finished) {
        Finished finished_message;
        if (read(bytes, finished_message)) return on_finished(finished_message, from);
    } else if (kind == Kind::broken) {
        Finished message;
        if (read(bytes, message)) return on_broken(message, from);
    } else if (kind == Kind::hello) {
        Hello hello;
        if (read(bytes, hello)) return;
    } else if (kind == Kind::beat) {
        Beat beat;
        if (read(bytes, beat)) return on_beat(beat, from);
    } else {
        Exchange exchange;
        if (kind >= Kind::eager && kind <= Kind::mail_store && read(bytes, exchange)) {
            std::span<const std::byte> payload;
            if (incoming != nullptr) payload = {incoming->data, incoming->bytes};
            return on_exchange(exchange, payload, from);
        }
    }
    if (incoming != nullptr && incoming->rendezvous != nullptr) transport.discard(incoming->rendezvous);
    log::warn("a malformed message between proxies was dropped: kind {}, header of {} bytes",
              static_cast<std::uint32_t>(kind), bytes.size());
}

void Engine::Impl::on_exchange(const Exchange& header, std::span<const std::byte> payload, Peer& from) {
    const JobId job{header.route.job_high, header.route.job_low};
    if (!from.self && job != from.job) return refuse("a message for another job", &from);
    if (header.kind == Kind::abort && header.route.team == every_team) {
        for (auto& session : sessions) {
            const bool concerned = session->job == job && session->job_rank != header.route.source;
            if (concerned) rank_gone(*session, header.route.source, from);
        }
        return;
    }
    Team* team = find_team(header.route, true);
    if (team == nullptr) {
        const auto known = jobs.find(job);
        if (known == jobs.end() || !take_room(*known->second, nullptr, payload.size()))
            return refuse("a message for a team that nobody has made", &from);
        orphans[{job.high, job.low, header.route.team, header.route.dest}].push_back(
            {header, {payload.begin(), payload.end()}, &from});
        return;
    }
    if (header.route.source >= team->peers.size()) {
        log::warn("a message from rank {} of team {:x}, which has {} ranks, was dropped", header.route.source,
                  team->id, team->peers.size());
        return;
    }
    if (team->peers[header.route.source] != &from)
        return refuse("a message in the name of a rank of another proxy", &from);
    if (header.kind == Kind::request) {
        on_request(*team, header, payload);
        return;
    }
    if (header.kind == Kind::mail) return on_mail(*team, header);
    if (header.kind == Kind::mail_store) return on_mail_store(*team, header);
    auto running = team->instances.find(header.sequence);
    if (running != team->instances.end()) {
        deliver(*running->second, header, payload);
    } else if (static_cast<std::int32_t>(header.sequence - team->next_sequence) >= 0) {
        if (!take_room(*team->session->its_job, team, payload.size()))
            return too_far_ahead(*team, header.route.source);
        team->early[header.sequence].push_back({header, {payload.begin(), payload.end()}, nullptr});
    } else if (header.kind != Kind::abort) {
        log::debug("a late message of kind {} for start {} of team {:x} was dropped",
                   static_cast<std::uint32_t>(header.kind), header.sequence, team->id);
    }
}

bool Engine::Impl::take_room(Job& job, Team* team, std::size_t payload_bytes) {
    const std::uint64_t room = EarlyMessage::room(payload_bytes);
    if (job.early_bytes + room > config.early_bytes) return false;
    job.early_bytes += room;
    if (team != nullptr) team->early_bytes += room;
    return true;
}

void Engine::Impl::give_room_back(Job& job, Team* team, std::size_t payload_bytes) {
    const std::uint64_t room = EarlyMessage::room(payload_bytes);
    job.early_bytes -= room;
    if (team != nullptr) team->early_bytes -= room;
}

void Engine::Impl::too_far_ahead(Team& team, std::uint32_t rank) {
    if (team.gone(rank)) return;
    log::error("rank {} of team {:x} has sent more ahead than the {} bytes that may wait; it counts as gone",
               rank, team.id, config.early_bytes);
    rank_gone(*team.session, team.job_ranks[rank], *team.peers[rank]);
}

void Engine::Impl::deliver(Instance& instance, const Exchange& header, std::span<const std::byte> payload) {
    if (instance.failing || instance.finishing) return;
    const Plan& plan = *instance.plan;
    const std::uint32_t source = header.route.source;
    switch (header.kind) {
        case Kind::ready: {
            const OpId op = plan.find_send(source, header.tag);
            if (op == Plan::npos) break;
            OpRun& run = instance.runs[op];
            if (run.has_ready) break;
            run.has_ready = true;
            run.remote_token = header.token;
            run.remote_bytes = header.bytes;
            run.chunk_limit = static_cast<std::uint32_t>(header.offset);
            if (run.phase == OpRun::Phase::active) launch_send(instance, op);
            return;
        }
        case Kind::eager: {
            const OpId op = plan.find_recv(source, header.tag);
            if (op == Plan::npos || instance.runs[op].has_eager) break;
            if (payload.size() != plan.schedule().ops()[op].bytes) {
                log::error("rank {} sent {} bytes where rank {} expects {}", source, payload.size(),
                           instance.team->rank, plan.schedule().ops()[op].bytes);
                return fail(instance, Status::truncated, true);
            }
            OpRun& run = instance.runs[op];
            run.has_eager = true;
            run.eager.assign(payload.begin(), payload.end());
            if (run.phase == OpRun::Phase::active) start_recv(instance, op);
            return;
        }
        case Kind::signal: {
            const std::uint64_t count = ++instance.signals[header.tag];
            const auto ops = plan.schedule().ops();
            for (std::size_t i = 0; i < instance.waits.size();) {
                const OpId op = instance.waits[i];
                if (ops[op].tag != header.tag || ops[op].bytes > count) {
                    ++i;
                    continue;
                }
                instance.waits[i] = instance.waits.back();
                instance.waits.pop_back();
                op_done(instance, op);
            }
            return;
        }
        case Kind::put_request:
            return place_put(instance, header);
        case Kind::get_request:
            return serve_get(instance, header);
        case Kind::abort: {
            const auto status = static_cast<Status>(static_cast<std::int64_t>(header.offset));
            return fail(instance, is_error(status) ? status : Status::protocol, false);
        }
        default:
            break;
    }
    log::error(
        "rank {} sent a message (kind {}, tag {:x}) that start {} of team {:x} does not expect at rank {}",
        source, static_cast<std::uint32_t>(header.kind), header.tag, instance.sequence, instance.team->id,
        instance.team->rank);
    fail(instance, Status::protocol, true);
}

// Called when the op starts, and again when the receiver is ready.
void Engine::Impl::launch_send(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    OpRun& run = instance.runs[id];
    Peer& peer = *instance.team->peers[op.peer];
    if (!peer.self && op.bytes <= eager_bytes) {
        const Exchange header{
            Kind::eager, instance.sequence, instance.team->route_to(op.peer), op.tag, 0, op.bytes, 0};
        const Location place = locate(instance, op.src);
        if (op.bytes == 0 || place.pointer != nullptr) {
            tell(peer, bytes_of(header), {place.pointer, op.bytes});
            counters.bytes_sent += op.bytes;
            return op_done(instance, id);
        }
        if (run.kernel_step != 1 && place.memory->reads_at_once(place.range, place.offset, op.bytes)) {
            std::array<std::byte, eager_bytes> copy;
            const Status status = place.read(copy.data(), op.bytes, nullptr);
            if (is_error(status)) return fail(instance, status, true);
            tell(peer, bytes_of(header), {copy.data(), op.bytes});
            counters.bytes_sent += op.bytes;
            return op_done(instance, id);
        }
        // Memory that answers later: copied here first, and called again by send_over.
        if (run.kernel_step == 1) {
            tell(peer, bytes_of(header), {run.kernel_src.data(), op.bytes});
            counters.bytes_sent += op.bytes;
            return op_done(instance, id);
        }
        run.kernel_src.resize(op.bytes);
        SendTransfer* transfer =
            new_send(*instance.team->session, {Owner::Kind::op, id, &instance, nullptr}, place, op.bytes);
        transfer->local = true;
        transfer->copy_to.pointer = run.kernel_src.data();
        run.send = transfer;
        run.kernel_step = 1;
        return begin(*transfer);
    }
    if (!run.has_ready) return;
    if (run.remote_bytes != op.bytes) {
        log::error("rank {} sends {} bytes where rank {} expects {}", instance.team->rank, op.bytes, op.peer,
                   run.remote_bytes);
        return fail(instance, Status::truncated, true);
    }
    SendTransfer* transfer = new_send(*instance.team->session, {Owner::Kind::op, id, &instance, nullptr},
                                      locate(instance, op.src), op.bytes);
    transfer->peer = &peer;
    transfer->remote_token = run.remote_token;
    transfer->chunk_limit = run.chunk_limit;
    run.send = transfer;
    begin(*transfer);
}

// Called when the op starts, and again when an eager payload has come.
void Engine::Impl::start_recv(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    OpRun& run = instance.runs[id];
    Peer& peer = *instance.team->peers[op.peer];
    const bool eager = !peer.self && op.bytes <= eager_bytes;
    if (eager && !run.has_eager) return;
    if (eager && op.bytes == 0) return op_done(instance, id);
    RecvTransfer* transfer = new_recv(*instance.team->session, {Owner::Kind::op, id, &instance, nullptr},
                                      locate(instance, op.dst), op.bytes, peer);
    run.recv = transfer;
    if (eager) {
        if (!store(*transfer, 0, run.eager))
            held.push_back({transfer->token, 0, op.bytes, nullptr, run.eager});
        return;
    }
    const Exchange header{Kind::ready,    instance.sequence,  instance.team->route_to(op.peer),
                          op.tag,         config.chunk_bytes, op.bytes,
                          transfer->token};
    tell(peer, bytes_of(header));
}

void Engine::Impl::place_put(Instance& instance, const Exchange& header) {
    const auto slots = instance.plan->schedule().slots();
    Peer& peer = *instance.team->peers[header.route.source];
    if (header.tag >= slots.size() || header.offset > slots[header.tag].bytes ||
        header.bytes > slots[header.tag].bytes - header.offset) {
        log::error("rank {} puts {} bytes at {} of slot {}, outside it", header.route.source, header.bytes,
                   header.offset, header.tag);
        const Finished answer{Kind::finished, static_cast<std::int32_t>(Status::access), header.token};
        return tell(peer, bytes_of(answer));
    }
    const schedule::BufferRef ref{static_cast<std::uint32_t>(header.tag), header.offset};
    RecvTransfer* transfer = new_recv(*instance.team->session, {Owner::Kind::guest, 0, &instance, nullptr},
                                      locate(instance, ref), header.bytes, peer);
    transfer->notify = &peer;
    transfer->notify_token = header.token;
    instance.guest_recvs.push_back(transfer);
    const Grant grant{Kind::grant, static_cast<std::uint32_t>(config.chunk_bytes), header.token,
                      transfer->token, header.bytes};
    tell(peer, bytes_of(grant));
}

void Engine::Impl::serve_get(Instance& instance, const Exchange& header) {
    const auto slots = instance.plan->schedule().slots();
    if (header.tag >= slots.size() || header.offset > slots[header.tag].bytes ||
        header.bytes > slots[header.tag].bytes - header.offset) {
        log::error("rank {} gets {} bytes at {} of slot {}, outside it", header.route.source, header.bytes,
                   header.offset, header.tag);
        return fail(instance, Status::access, true);
    }
    const schedule::BufferRef ref{static_cast<std::uint32_t>(header.tag), header.offset};
    SendTransfer* transfer = new_send(*instance.team->session, {Owner::Kind::guest, 0, &instance, nullptr},
                                      locate(instance, ref), header.bytes);
    transfer->peer = instance.team->peers[header.route.source];
    transfer->remote_token = header.token;
    instance.guest_sends.push_back(transfer);
    begin(*transfer);
}

void Engine::Impl::on_grant(const Grant& grant, const Peer& from) {
    SendTransfer* transfer = sends.find(grant.sender);
    if (transfer != nullptr && transfer->peer != &from)
        return refuse("a grant for a transfer that is with another proxy", &from);
    if (transfer == nullptr || transfer->dead || transfer->remote_token != 0) return;
    transfer->remote_token = grant.receiver;
    transfer->chunk_limit = grant.chunk_limit;
    begin(*transfer);
}

void Engine::Impl::on_finished(const Finished& message, const Peer& from) {
    SendTransfer* transfer = sends.find(message.token);
    if (transfer != nullptr && transfer->peer != &from)
        return refuse("the end of a transfer that is with another proxy", &from);
    if (transfer == nullptr || transfer->dead) return;
    const auto status = static_cast<Status>(message.status);
    transfer->awaits_finished = false;
    if (is_error(status)) {
        transfer->status = status;
        transfer->next = transfer->bytes;
    } else if (transfer->owner.kind == Owner::Kind::basic) {
        // The receiver has cut the message short, or wanted nothing of it: for the sender it is over.
        transfer->moved = transfer->next = transfer->bytes;
    }
    if (transfer->pieces == 0 && (is_error(transfer->status) || transfer->moved == transfer->bytes))
        send_over(*transfer);
}

void Engine::Impl::on_broken(const Finished& message, const Peer& from) {
    RecvTransfer* transfer = recvs.find(message.token);
    if (transfer != nullptr && transfer->from != &from)
        return refuse("the end of a transfer that is with another proxy", &from);
    if (transfer == nullptr || transfer->dead) return;
    const auto status = static_cast<Status>(message.status);
    transfer->status = is_error(status) ? status : Status::protocol;
    if (transfer->pieces == 0) recv_over(*transfer);
}

}  // namespace offpath::engine
