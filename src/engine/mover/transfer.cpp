// Transfers, and the pieces that they are cut into. Payload moves from host memory to host memory, through
// bounce buffers where that memory has no pointer.
#include "engine/mover/mover.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace offpath::engine {

namespace {

constexpr std::size_t page = 4096;
constexpr unsigned most_rounds_without_copy = 16;
// On a byte stream, small messages wait behind what is in flight. One piece leaves while the next is read.
constexpr std::uint32_t most_pushes = 2;

}  // namespace

Mover::Mover(transport::Transport& transport, Peers& peers, RandomNumbers& random, const Config& config,
             Counters& counters, bool yields)
    : transport_(transport),
      peers_(peers),
      config_(config),
      counters_(counters),
      yields_(yields),
      sends_(random),
      recvs_(random),
      pieces_(random),
      arena_(nullptr, [](std::byte* p) { std::free(p); }) {
    const std::size_t chunk = (config.chunk_bytes + page - 1) / page * page;
    const std::size_t count = config.send_bounces + config.recv_bounces;
    arena_.reset(static_cast<std::byte*>(std::aligned_alloc(page, std::max(chunk * count, page))));
    if (!arena_) throw std::bad_alloc();
    for (std::size_t i = 0; i < count; ++i)
        (i < config.send_bounces ? send_bounces_ : recv_bounces_).push_back(arena_.get() + i * chunk);
}

namespace {

template <typename Kind>
Kind* prepare(Kind* transfer, MemoryUser& user, TransferOwner& owner, std::uint64_t tag,
              const Location& place, std::uint64_t bytes) {
    transfer->user = &user;
    transfer->owner = &owner;
    transfer->tag = tag;
    transfer->place = place;
    transfer->bytes = bytes;
    return transfer;
}

}  // namespace

SendTransfer* Mover::new_send(MemoryUser& user, TransferOwner& owner, std::uint64_t tag,
                              const Location& place, std::uint64_t bytes) {
    return prepare(sends_.take(), user, owner, tag, place, bytes);
}

RecvTransfer* Mover::new_recv(MemoryUser& user, TransferOwner& owner, std::uint64_t tag,
                              const Location& place, std::uint64_t bytes, Peer& from) {
    RecvTransfer* const transfer = prepare(recvs_.take(), user, owner, tag, place, bytes);
    transfer->from = &from;
    return transfer;
}

namespace {

void begin_trace(Transfer& transfer, trace::Kind kind, const Peer* peer) {
    transfer.traced_as = kind;
    transfer.traced = trace::new_id();
    trace::begin(kind, transfer.traced, transfer.bytes,
                 peer != nullptr ? static_cast<std::uint32_t>(peer->id) : 0);
}

void end_trace(Transfer& transfer) {
    if (transfer.traced != 0) [[unlikely]]
        trace::end(transfer.traced_as, std::exchange(transfer.traced, 0));
}

}  // namespace

void Mover::begin_copy(SendTransfer& transfer, const Location& to) {
    transfer.local = true;
    transfer.copy_to = to;
    if (transfer.parts != nullptr) shared_parts::open(*transfer.parts);
    begin(transfer);
}

void Mover::begin(SendTransfer& transfer) {
    transfer.begun = true;
    if (transfer.peer != nullptr && transfer.peer->self) {
        RecvTransfer* partner = recvs_.find(transfer.remote_token);
        if (partner == nullptr || partner->dead || partner->bytes < transfer.bytes) {
            // With `ends_are_told`, the receiver's instance has failed. Its abort message is on the way here
            // and brings the reason.
            if (transfer.ends_are_told) return;
            transfer.status = Status::peer_lost;
            return send_over(transfer);
        }
        transfer.local = true;
        transfer.partner = partner;
        transfer.copy_to = partner->place;
        partner->partner = &transfer;
    }
    std::uint64_t most = config_.chunk_bytes;
    transfer.most_pieces = config_.chunks_in_flight;
    if (!transfer.local && transfer.peer != nullptr && peers_.connect(*transfer.peer)) {
        transport::Endpoint& endpoint = *transfer.peer->endpoint();
        transfer.least_from_network = transport_.least_from_network(endpoint);
        const std::size_t push = transport_.push_bytes(endpoint);
        if (push > 0) {
            most = std::min<std::uint64_t>(most, push);
            transfer.most_pieces = std::min(transfer.most_pieces, most_pushes);
        }
    }
    transfer.chunk_limit = static_cast<std::uint32_t>(
        transfer.chunk_limit == 0 ? most : std::min<std::uint64_t>(transfer.chunk_limit, most));
    if (transfer.bytes == 0) {
        if (transfer.partner != nullptr) recv_over(*transfer.partner);
        return send_over(transfer);
    }
    if (trace::on()) [[unlikely]]
        begin_trace(transfer, transfer.local ? trace::Kind::copy : trace::Kind::send, transfer.peer);
    transfer.queued = true;
    // Copies within host memory can wait. Copies between scratch and host memory are small, and others wait
    // for them.
    const bool within_hosts =
        transfer.local && transfer.place.memory != nullptr && transfer.copy_to.memory != nullptr;
    (within_hosts ? copies_ : active_).push_back(&transfer);
}

std::byte* Mover::take_bounce(bool recv_pool) {
    auto& pool = recv_pool ? recv_bounces_ : send_bounces_;
    if (pool.empty() || (recv_pool && !held_.empty() && !pumping_held_)) return nullptr;
    std::byte* bounce = pool.back();
    pool.pop_back();
    return bounce;
}

Piece* Mover::new_piece(SendTransfer* send, RecvTransfer* recv, std::uint64_t offset, std::size_t bytes) {
    Piece* piece = pieces_.take();
    piece->function = [](Completion* completion, Status status) {
        auto* done = static_cast<Piece*>(completion);
        done->mover->step(*done, status);
    };
    piece->mover = this;
    piece->send = send;
    piece->recv = recv;
    piece->offset = offset;
    piece->bytes = bytes;
    if (send != nullptr) {
        ++send->pieces;
        piece->users[0] = send->user;
        ++send->user->pieces;
    }
    if (recv != nullptr) {
        // The bytes of a transfer within this engine are traced as the sender's.
        if (trace::on() && send == nullptr && recv->traced == 0) [[unlikely]]
            begin_trace(*recv, trace::Kind::receive, recv->from);
        ++recv->pieces;
        piece->users[1] = recv->user;
        ++recv->user->pieces;
    }
    return piece;
}

// Starts at most one piece of each of the first `most` transfers.
bool Mover::pump_all(std::deque<SendTransfer*>& transfers, std::size_t most) {
    bool moved = false;
    for (std::size_t n = std::min(transfers.size(), most); n > 0; --n) {
        SendTransfer* transfer = transfers.front();
        transfers.pop_front();
        transfer->queued = false;
        const std::uint64_t token = transfer->token;
        moved |= pump(*transfer);
        if (sends_.find(token) == nullptr) continue;
        if (!transfer->dead && transfer->next < transfer->bytes) {
            transfer->queued = true;
            transfers.push_back(transfer);
        }
    }
    return moved;
}

// False: all parts are taken, here or by the rank.
bool Mover::take_part(SendTransfer& transfer) {
    // A rank that writes nonsense into the word must not keep this engine busy for ever.
    const auto part = transfer.moved < transfer.bytes ? shared_parts::take(*transfer.parts, transfer.bytes)
                                                      : shared_parts::Part{};
    transfer.next = part.bytes > 0 ? part.offset : transfer.bytes;
    transfer.taken = part.bytes;
    return part.bytes > 0;
}

// Of the next piece.
std::size_t Mover::next_bytes(const SendTransfer& transfer) {
    const std::uint64_t left = transfer.parts != nullptr ? transfer.taken : transfer.bytes - transfer.next;
    const std::uint64_t most = transfer.chunk_limit;
    // Where the network card moves the bytes, no rest is left that is too small for it.
    const std::uint64_t least = transfer.least_from_network;
    if (!transfer.local && least <= most && left > most && left - most < least) return (left + 1) / 2;
    return std::min(left, most);
}

// Starts at most one piece. The transfer may be gone afterwards.
bool Mover::pump(SendTransfer& transfer) {
    if (transfer.dead || transfer.ended || is_error(transfer.status)) {
        if (transfer.pieces == 0) send_over(transfer);
        return true;
    }
    if (transfer.local && transfer.partner == nullptr && transfer.peer != nullptr) {
        if (transfer.ends_are_told) return false;  // the abort message brings the reason, as in begin()
        transfer.status = Status::peer_lost;
        transfer.next = transfer.bytes;
        if (transfer.pieces == 0) send_over(transfer);
        return true;
    }
    if (transfer.pieces >= transfer.most_pieces) return false;
    if (transfer.parts != nullptr && transfer.taken == 0 && !take_part(transfer)) {
        if (transfer.pieces == 0) send_over(transfer);
        return true;
    }
    const Location from = transfer.place.at(transfer.next);
    std::size_t bytes = next_bytes(transfer);
    const std::byte* const source = from.pointer_for_reading(bytes);
    const Location to = transfer.local ? transfer.copy_to.at(transfer.next) : Location{};
    const bool within = transfer.local && from.reaches(to, bytes);
    const bool by_network = !transfer.local && from.network && bytes >= transfer.least_from_network;
    const bool needs_bounce = !within && !by_network && source == nullptr && to.pointer == nullptr;
    if (needs_bounce && (from.memory->waits() || (to.memory != nullptr && to.memory->waits()))) return false;
    std::byte* bounce = needs_bounce ? take_bounce(false) : nullptr;
    if (needs_bounce && bounce == nullptr) return false;

    Piece* piece = new_piece(&transfer, transfer.partner, transfer.next, bytes);
    piece->bounce = bounce;
    piece->source = source;
    transfer.next += bytes;
    if (transfer.parts != nullptr) transfer.taken -= bytes;
    Status status = Status::ok;
    if (within) {
        piece->stage = Piece::Stage::writing;
        status = from.copy(to, bytes, piece);
    } else if (by_network) {
        piece->stage = Piece::Stage::reading;  // nothing to read: step() sends from this place
    } else if (source == nullptr) {
        piece->stage = Piece::Stage::reading;
        piece->copies = 1;
        status = from.read(to.pointer != nullptr ? to.pointer : bounce, bytes, piece);
    } else if (!transfer.local) {
        piece->stage = Piece::Stage::reading;  // likewise
    } else {
        piece->stage = Piece::Stage::writing;
        if (to.pointer != nullptr) {
            std::memcpy(to.pointer, source, bytes);
        } else {
            status = to.write(source, bytes, piece);
        }
    }
    if (status != Status::in_progress) step(*piece, status);
    return true;
}

// Called when a stage of a piece has ended.
void Mover::step(Piece& piece, Status status) {
    if (peers_.closed()) return;
    if (is_error(status)) return piece_over(piece, status);
    if (piece.stage == Piece::Stage::reading) {
        SendTransfer& transfer = *piece.send;
        if (transfer.dead) return piece_over(piece, Status::canceled);
        if (transfer.local) {
            const Location to = transfer.copy_to.at(piece.offset);
            if (to.pointer != nullptr) return piece_over(piece, Status::ok);
            piece.stage = Piece::Stage::writing;
            status = to.write(piece.bounce, piece.bytes, &piece);
        } else {
            piece.stage = Piece::Stage::sending;
            if (!peers_.connect(*transfer.peer)) return piece_over(piece, Status::peer_lost);
            const Chunk header{Kind::chunk, static_cast<std::uint32_t>(piece.bytes), transfer.remote_token,
                               piece.offset, piece.copies};
            if (piece.source == nullptr && piece.bounce == nullptr)
                status = peers_.transmit_from(*transfer.peer, bytes_of(header),
                                              transfer.place.at(piece.offset).network, piece.bytes, &piece);
            else
                status = peers_.transmit(*transfer.peer, bytes_of(header),
                                         piece.source != nullptr ? piece.source : piece.bounce, piece.bytes,
                                         &piece);
        }
        if (status != Status::in_progress) step(piece, status);
        return;
    }
    if (piece.stage == Piece::Stage::fetching) {
        const Location to = piece.recv->place.at(piece.offset);
        if (piece.bounce == nullptr) return piece_over(piece, Status::ok);
        if (piece.recv->dead) return piece_over(piece, Status::canceled);
        piece.stage = Piece::Stage::storing;
        status = to.write(piece.bounce, piece.bytes, &piece);
        if (status == Status::in_progress) return;
    }
    piece_over(piece, status);
}

void Mover::piece_over(Piece& piece, Status status) {
    SendTransfer* send = piece.send;
    RecvTransfer* recv = piece.recv;
    if (piece.bounce != nullptr)
        (piece.from_recv_pool ? recv_bounces_ : send_bounces_).push_back(piece.bounce);
    for (MemoryUser* user : piece.users) {
        if (user != nullptr) --user->pieces;
    }
    const std::size_t bytes = piece.bytes;
    if (send == nullptr && !is_error(status)) {
        counters_.bytes_received += bytes;
        if (recv->bytes > eager_bytes) {
            counters_.copies.count(piece.copies, bytes);
            recv->user->copies.count(piece.copies, bytes);
        }
    }
    pieces_.give_back(&piece);
    const bool in_parts = send != nullptr && send->parts != nullptr;
    auto account = [&](Transfer& transfer) {
        --transfer.pieces;
        if (is_error(status)) {
            if (transfer.status == Status::ok) transfer.status = status;
        } else {
            transfer.moved += bytes;
        }
        const bool all = in_parts ? send->next == send->bytes : transfer.moved == transfer.bytes;
        return transfer.pieces == 0 && (transfer.dead || is_error(transfer.status) || all);
    };
    if (send != nullptr && recv == nullptr) {
        (send->local ? counters_.bytes_local : counters_.bytes_sent) += bytes;
    } else if (send != nullptr) {
        counters_.bytes_local += bytes;
    }
    const bool recv_done = recv != nullptr && account(*recv);
    if (send != nullptr) {
        if (is_error(status)) send->next = send->bytes;
        const bool has_all = account(*send);
        const bool waits = send->awaits_end && !send->dead && !is_error(send->status);
        const bool send_done = send->ended ? send->pieces == 0 : has_all && !waits;
        const std::uint64_t token = send->token;
        // End the receiver first. If it has failed, its owner may end the sender too.
        if (recv_done) recv_over(*recv);
        if (send_done && sends_.find(token) == send) send_over(*send);
    } else if (recv_done) {
        recv_over(*recv);
    }
}

void Mover::send_over(SendTransfer& transfer) {
    if (transfer.queued) return;  // still in a queue: pump_all() ends it
    end_trace(transfer);
    const TransferEnd end{true, transfer.tag, transfer.status, transfer.dead};
    TransferOwner& owner = *transfer.owner;
    // A receiver must be told, or it would wait for the rest forever. For its rank, the sender is lost.
    const bool cut = is_error(end.status) || (end.dead && transfer.moved < transfer.bytes);
    if (cut && !transfer.ends_are_told && transfer.peer != nullptr && transfer.remote_token != 0) {
        const bool failed = is_error(end.status) && end.status != Status::canceled;
        const Status why = failed ? end.status : Status::peer_lost;
        peers_.tell(*transfer.peer,
                    bytes_of(Finished{Kind::broken, static_cast<std::int32_t>(why), transfer.remote_token}));
    }
    if (transfer.partner != nullptr) transfer.partner->partner = nullptr;
    sends_.give_back(&transfer);
    owner.transfer_over(end);
}

void Mover::recv_over(RecvTransfer& transfer) {
    end_trace(transfer);
    const TransferEnd end{false, transfer.tag, transfer.status, transfer.dead};
    TransferOwner& owner = *transfer.owner;
    if (transfer.partner != nullptr) transfer.partner->partner = nullptr;
    recvs_.give_back(&transfer);
    owner.transfer_over(end);
}

void Mover::kill(SendTransfer* transfer) {
    transfer->dead = true;
    if (transfer->pieces == 0 && !transfer->queued) send_over(*transfer);
}

void Mover::kill(RecvTransfer* transfer) {
    transfer->dead = true;
    if (transfer->pieces == 0) recv_over(*transfer);
}

bool Mover::pump_active() {
    return pump_all(active_, active_.size());
}

bool Mover::pump_copies(bool moved, bool at_once) {
    if (copies_.empty()) return false;
    if (moved && !at_once && ++rounds_without_copy_ < most_rounds_without_copy) return false;
    rounds_without_copy_ = 0;
    bool copied = false;
    // A copy that waits for memory must not stop the copies behind it.
    for (std::size_t tries = copies_.size(); tries > 0 && !copied; --tries)
        copied = pump_all(copies_, 1);
    if (!moved && yields_) std::this_thread::yield();
    return copied;
}

void Mover::trim() {
    sends_.release_if_unused();
    recvs_.release_if_unused();
    pieces_.release_if_unused();
}

void TransferPair::kill(Mover& mover) {
    killing_ = true;
    if (send != nullptr) mover.kill(send);
    if (recv != nullptr) mover.kill(recv);
    killing_ = false;
}

void TransferPair::transfer_over(const TransferEnd& end) {
    if (end.sent) {
        send = nullptr;
    } else {
        recv = nullptr;
    }
    if (!killing_) moved(end.status);
}

}  // namespace offpath::engine
