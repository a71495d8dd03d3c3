// Transfers and the pieces they are cut into: from host memory to host memory, through bounce buffers where
// it has no pointer.
#include "base/log.h"
#include "engine/onesided.h"

namespace offpath::engine {

SendTransfer* Engine::Impl::new_send(Session& session, const Owner& owner, const Location& place,
                                     std::uint64_t bytes) {
    SendTransfer* transfer = sends.take();
    transfer->session = &session;
    transfer->owner = owner;
    transfer->place = place;
    transfer->bytes = bytes;
    if (owner.instance != nullptr) ++owner.instance->holds;
    return transfer;
}

RecvTransfer* Engine::Impl::new_recv(Session& session, const Owner& owner, const Location& place,
                                     std::uint64_t bytes, Peer& from) {
    RecvTransfer* transfer = recvs.take();
    transfer->from = &from;
    transfer->session = &session;
    transfer->owner = owner;
    transfer->place = place;
    transfer->bytes = bytes;
    if (owner.instance != nullptr) ++owner.instance->holds;
    return transfer;
}

// Both ends are ready: the payload may move.
void Engine::Impl::begin(SendTransfer& transfer) {
    if (transfer.peer != nullptr && transfer.peer->self) {
        RecvTransfer* partner = recvs.find(transfer.remote_token);
        if (partner == nullptr || partner->dead || partner->bytes < transfer.bytes) {
            // The receiver's instance has failed, and its abort is on the way here with the reason.
            if (transfer.owner.kind == Owner::Kind::op) return;
            transfer.status = Status::peer_lost;
            return send_over(transfer);
        }
        transfer.local = true;
        transfer.partner = partner;
        transfer.copy_to = partner->place;
        partner->partner = &transfer;
    }
    std::uint64_t most = config.chunk_bytes;
    if (!transfer.local && transfer.peer != nullptr && connect(*transfer.peer)) {
        const std::size_t push = transport.push_bytes(*transfer.peer->endpoint());
        if (push > 0) most = std::min<std::uint64_t>(most, push);
    }
    transfer.chunk_limit = static_cast<std::uint32_t>(
        transfer.chunk_limit == 0 ? most : std::min<std::uint64_t>(transfer.chunk_limit, most));
    if (transfer.bytes == 0) {
        if (transfer.partner != nullptr) recv_over(*transfer.partner);
        return send_over(transfer);
    }
    transfer.queued = true;
    // Between scratch and host memory goes what others wait for, and little at a time.
    const bool within_hosts =
        transfer.local && transfer.place.memory != nullptr && transfer.copy_to.memory != nullptr;
    (within_hosts ? copies : active).push_back(&transfer);
}

std::byte* Engine::Impl::take_bounce(bool recv_pool) {
    auto& pool = recv_pool ? recv_bounces : send_bounces;
    if (pool.empty() || (recv_pool && !held.empty() && !pumping_held)) return nullptr;
    std::byte* bounce = pool.back();
    pool.pop_back();
    return bounce;
}

Piece* Engine::Impl::new_piece(SendTransfer* send, RecvTransfer* recv, std::uint64_t offset,
                               std::size_t bytes) {
    Piece* piece = pieces.take();
    piece->function = [](Completion* completion, Status status) {
        auto* done = static_cast<Piece*>(completion);
        done->engine->step(*done, status);
    };
    piece->engine = this;
    piece->send = send;
    piece->recv = recv;
    piece->offset = offset;
    piece->bytes = bytes;
    if (send != nullptr) {
        ++send->pieces;
        piece->sessions[0] = send->session;
        ++send->session->pieces;
    }
    if (recv != nullptr) {
        ++recv->pieces;
        piece->sessions[1] = recv->session;
        ++recv->session->pieces;
    }
    return piece;
}

// Starts at most one piece of each of the first `most` transfers.
bool Engine::Impl::pump_all(std::deque<SendTransfer*>& transfers, std::size_t most) {
    bool moved = false;
    for (std::size_t n = std::min(transfers.size(), most); n > 0; --n) {
        SendTransfer* transfer = transfers.front();
        transfers.pop_front();
        transfer->queued = false;
        const std::uint64_t token = transfer->token;
        moved |= pump(*transfer);
        if (sends.find(token) == nullptr) continue;
        if (!transfer->dead && transfer->next < transfer->bytes) {
            transfer->queued = true;
            transfers.push_back(transfer);
        }
    }
    return moved;
}

// Starts at most one piece. The transfer may be gone afterwards.
bool Engine::Impl::pump(SendTransfer& transfer) {
    if (transfer.dead || is_error(transfer.status)) {
        if (transfer.pieces == 0) send_over(transfer);
        return true;
    }
    if (transfer.local && transfer.partner == nullptr && transfer.peer != nullptr) {
        if (transfer.owner.kind == Owner::Kind::op) return false;  // as in begin()
        transfer.status = Status::peer_lost;
        transfer.next = transfer.bytes;
        if (transfer.pieces == 0) send_over(transfer);
        return true;
    }
    if (transfer.pieces >= config.chunks_in_flight) return false;
    const std::size_t bytes = std::min<std::uint64_t>(transfer.chunk_limit, transfer.bytes - transfer.next);
    const Location from = transfer.place.at(transfer.next);
    const Location to = transfer.local ? transfer.copy_to.at(transfer.next) : Location{};
    const bool within = transfer.local && from.reaches(to);
    const bool needs_bounce = !within && from.pointer == nullptr && to.pointer == nullptr;
    if (needs_bounce && (from.memory->waits() || (to.memory != nullptr && to.memory->waits()))) return false;
    std::byte* bounce = needs_bounce ? take_bounce(false) : nullptr;
    if (needs_bounce && bounce == nullptr) return false;

    Piece* piece = new_piece(&transfer, transfer.partner, transfer.next, bytes);
    piece->bounce = bounce;
    transfer.next += bytes;
    Status status = Status::ok;
    if (within) {
        piece->stage = Piece::Stage::writing;
        status = from.copy(to, bytes, piece);
    } else if (from.pointer == nullptr) {
        piece->stage = Piece::Stage::reading;
        status = from.read(to.pointer != nullptr ? to.pointer : bounce, bytes, piece);
    } else if (!transfer.local) {
        piece->stage = Piece::Stage::reading;  // nothing to read: step() sends from where it lies
    } else {
        piece->stage = Piece::Stage::writing;
        if (to.pointer != nullptr) {
            std::memcpy(to.pointer, from.pointer, bytes);
        } else {
            status = to.write(from.pointer, bytes, piece);
        }
    }
    if (status != Status::in_progress) step(*piece, status);
    return true;
}

// A stage of a piece has ended.
void Engine::Impl::step(Piece& piece, Status status) {
    if (closed) return;
    if (is_error(status)) return piece_over(piece, status);
    if (piece.stage == Piece::Stage::reading) {
        SendTransfer& transfer = *piece.send;
        if (transfer.dead) return piece_over(piece, Status::canceled);
        const Location from = transfer.place.at(piece.offset);
        if (transfer.local) {
            const Location to = transfer.copy_to.at(piece.offset);
            if (to.pointer != nullptr) return piece_over(piece, Status::ok);
            piece.stage = Piece::Stage::writing;
            status = to.write(piece.bounce, piece.bytes, &piece);
        } else {
            piece.stage = Piece::Stage::sending;
            if (!connect(*transfer.peer)) return piece_over(piece, Status::peer_lost);
            const Chunk header{Kind::chunk, static_cast<std::uint32_t>(piece.bytes), transfer.remote_token,
                               piece.offset};
            status = transmit(*transfer.peer, bytes_of(header),
                              from.pointer != nullptr ? from.pointer : piece.bounce, piece.bytes, &piece);
        }
        if (status != Status::in_progress) step(piece, status);
        return;
    }
    if (piece.stage == Piece::Stage::fetching) {
        const Location to = piece.recv->place.at(piece.offset);
        if (to.pointer != nullptr) return piece_over(piece, Status::ok);
        if (piece.recv->dead) return piece_over(piece, Status::canceled);
        piece.stage = Piece::Stage::storing;
        status = to.write(piece.bounce, piece.bytes, &piece);
        if (status == Status::in_progress) return;
    }
    piece_over(piece, status);
}

void Engine::Impl::piece_over(Piece& piece, Status status) {
    SendTransfer* send = piece.send;
    RecvTransfer* recv = piece.recv;
    if (piece.bounce != nullptr) (piece.from_recv_pool ? recv_bounces : send_bounces).push_back(piece.bounce);
    for (Session* session : piece.sessions) {
        if (session != nullptr) --session->pieces;
    }
    const std::size_t bytes = piece.bytes;
    pieces.give_back(&piece);
    auto account = [&](Transfer& transfer) {
        --transfer.pieces;
        if (is_error(status)) {
            if (transfer.status == Status::ok) transfer.status = status;
        } else {
            transfer.moved += bytes;
        }
        return transfer.pieces == 0 &&
               (transfer.dead || is_error(transfer.status) || transfer.moved == transfer.bytes);
    };
    if (send != nullptr && recv == nullptr) {
        (send->local ? counters.bytes_local : counters.bytes_sent) += bytes;
    } else if (send == nullptr) {
        counters.bytes_received += bytes;
    } else {
        counters.bytes_local += bytes;
    }
    const bool recv_done = recv != nullptr && account(*recv);
    if (send != nullptr) {
        if (is_error(status)) send->next = send->bytes;
        const bool send_done = account(*send);
        const std::uint64_t token = send->token;
        // The receiver first: its end may be what the sender's owner waits for, and, when it fails, be the
        // sender's end too.
        if (recv_done) recv_over(*recv);
        if (send_done && sends.find(token) == send) send_over(*send);
    } else if (recv_done) {
        recv_over(*recv);
    }
}

void Engine::Impl::send_over(SendTransfer& transfer) {
    if (transfer.queued) return;  // still in a queue: pump_all comes by
    if (!transfer.dead && transfer.awaits_finished && !is_error(transfer.status)) return;
    const Owner owner = transfer.owner;
    const Status status = transfer.status;
    const bool dead = transfer.dead;
    // Instances tell each other of their failures; any other receiver would wait for the rest for ever.
    const bool planned = owner.kind == Owner::Kind::op || owner.kind == Owner::Kind::guest;
    const bool cut = is_error(status) || (dead && transfer.moved < transfer.bytes);
    if (cut && !planned && transfer.peer != nullptr && transfer.remote_token != 0) {
        const Finished message{Kind::broken,
                               static_cast<std::int32_t>(is_error(status) ? status : Status::canceled),
                               transfer.remote_token};
        tell(*transfer.peer, bytes_of(message));
    }
    release(transfer);
    switch (owner.kind) {
        case Owner::Kind::op: {
            Instance& instance = *owner.instance;
            if (dead) return maybe_finish(instance);
            OpRun& run = instance.runs[owner.op];
            run.send = nullptr;
            if (is_error(status)) return fail(instance, status, true);
            switch (instance.plan->schedule().ops()[owner.op].kind) {
                case schedule::OpKind::compute:
                    return kernel_step(instance, owner.op);
                case schedule::OpKind::send:
                    if (run.kernel_step == 1) return launch_send(instance, owner.op);
                    return op_done(instance, owner.op);
                default:
                    return op_done(instance, owner.op);
            }
        }
        case Owner::Kind::guest:
            if (!dead) std::erase(owner.instance->guest_sends, &transfer);
            [[fallthrough]];
        default:
            owner_over(owner, status, dead);
    }
}

void Engine::Impl::recv_over(RecvTransfer& transfer) {
    const Owner owner = transfer.owner;
    const Status status = transfer.status;
    const bool dead = transfer.dead;
    if (transfer.notify != nullptr && !dead) {
        const Finished message{Kind::finished, static_cast<std::int32_t>(status), transfer.notify_token};
        tell(*transfer.notify, bytes_of(message));
    }
    release(transfer);
    switch (owner.kind) {
        case Owner::Kind::op: {
            Instance& instance = *owner.instance;
            if (dead) return maybe_finish(instance);
            instance.runs[owner.op].recv = nullptr;
            if (is_error(status)) return fail(instance, status, true);
            return op_done(instance, owner.op);
        }
        case Owner::Kind::guest:
            if (!dead) std::erase(owner.instance->guest_recvs, &transfer);
            [[fallthrough]];
        default:
            owner_over(owner, status, dead);
    }
}

// A transfer that carries no op has ended: its owner goes on.
void Engine::Impl::owner_over(const Owner& owner, Status status, bool dead) {
    if (owner.kind == Owner::Kind::basic) return basic_over(*owner.basic, status);
    if (owner.kind == Owner::Kind::part) return one_sided->part_moved(*owner.part, status);
    if (owner.kind == Owner::Kind::visit) return one_sided->visit_moved(*owner.visit, status);
    if (owner.kind != Owner::Kind::guest) return;
    if (is_error(status) && !dead) return fail(*owner.instance, status, true);
    maybe_finish(*owner.instance);
}

void Engine::Impl::kill(SendTransfer* transfer) {
    transfer->dead = true;
    if (transfer->pieces == 0 && !transfer->queued) send_over(*transfer);
}

void Engine::Impl::kill(RecvTransfer* transfer) {
    transfer->dead = true;
    if (transfer->pieces == 0) recv_over(*transfer);
}

void Engine::Impl::release(SendTransfer& transfer) {
    if (transfer.partner != nullptr) transfer.partner->partner = nullptr;
    if (transfer.owner.instance != nullptr) --transfer.owner.instance->holds;
    if (transfer.owner.basic != nullptr) transfer.owner.basic->send = nullptr;
    if (transfer.owner.part != nullptr) transfer.owner.part->send = nullptr;
    if (transfer.owner.visit != nullptr) transfer.owner.visit->send = nullptr;
    sends.give_back(&transfer);
}

void Engine::Impl::release(RecvTransfer& transfer) {
    if (transfer.partner != nullptr) transfer.partner->partner = nullptr;
    if (transfer.owner.instance != nullptr) --transfer.owner.instance->holds;
    if (transfer.owner.basic != nullptr) transfer.owner.basic->recv = nullptr;
    if (transfer.owner.part != nullptr) transfer.owner.part->recv = nullptr;
    if (transfer.owner.visit != nullptr) transfer.owner.visit->recv = nullptr;
    recvs.give_back(&transfer);
}

}  // namespace offpath::engine
