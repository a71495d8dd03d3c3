// Payload that arrives with its message, or that is fetched once there is a place for it.
#include "base/log.h"
#include "engine/mover/mover.h"

#include <algorithm>
#include <cstring>

namespace offpath::engine {

void Mover::on_chunk(const Chunk& header, const transport::Incoming& incoming, const Peer& from) {
    RecvTransfer* transfer = recvs_.find(header.token);
    if (transfer != nullptr && transfer->from != &from) {
        if (incoming.rendezvous != nullptr) transport_.discard(incoming.rendezvous);
        return peers_.refuse("a chunk of a transfer that is with another proxy", &from);
    }
    const bool fits = transfer != nullptr && header.offset <= transfer->bytes &&
                      incoming.bytes <= transfer->bytes - header.offset &&
                      transfer->moved + incoming.bytes <= transfer->bytes;
    if (!fits || transfer->dead) {
        if (incoming.rendezvous != nullptr) transport_.discard(incoming.rendezvous);
        if (transfer != nullptr && !fits) {
            log::error(Code::malformed, "a chunk of {} bytes at {} leaves its transfer of {} bytes",
                       incoming.bytes, header.offset, transfer->bytes);
            transfer->status = Status::protocol;
            if (transfer->pieces == 0) recv_over(*transfer);
        }
        return;
    }
    const auto copies = static_cast<std::uint8_t>(std::min(header.copies, 2u));
    if (incoming.rendezvous != nullptr) {
        if (!fetch(*transfer, header.offset, copies, incoming.bytes, incoming.rendezvous)) {
            held_.push_back({header.token, header.offset, incoming.bytes, copies, incoming.rendezvous, {}});
        }
    } else if (!store(*transfer, header.offset, copies, {incoming.data, incoming.bytes})) {
        held_.push_back({header.token,
                         header.offset,
                         incoming.bytes,
                         copies,
                         nullptr,
                         {incoming.data, incoming.data + incoming.bytes}});
    }
}

// False: no bounce buffer is free, and nothing was done.
bool Mover::store(RecvTransfer& transfer, std::uint64_t offset, std::uint8_t copies,
                  std::span<const std::byte> payload) {
    const Location to = transfer.place.at(offset);
    const bool immediate = to.pointer != nullptr || to.memory->back_end(to.range) == memory::BackEnd::cma;
    std::byte* bounce = nullptr;
    if (!immediate) {
        if (payload.size() > config_.chunk_bytes) {
            transfer.status = Status::protocol;
            if (transfer.pieces == 0) recv_over(transfer);
            return true;
        }
        bounce = take_bounce(true);
        if (bounce == nullptr) return false;
        std::memcpy(bounce, payload.data(), payload.size());
    }
    Piece* piece = new_piece(nullptr, &transfer, offset, payload.size());
    piece->stage = Piece::Stage::storing;
    piece->bounce = bounce;
    piece->from_recv_pool = true;
    piece->copies = static_cast<std::uint8_t>(copies + (bounce != nullptr ? 2 : 1));
    Status status = Status::ok;
    if (to.pointer != nullptr) {
        std::memcpy(to.pointer, payload.data(), payload.size());
    } else {
        status = to.write(bounce != nullptr ? bounce : payload.data(), payload.size(), piece);
    }
    if (status != Status::in_progress) step(*piece, status);
    return true;
}

// False: no bounce buffer is free, and nothing was done.
bool Mover::fetch(RecvTransfer& transfer, std::uint64_t offset, std::uint8_t copies, std::size_t bytes,
                  void* rendezvous) {
    const Location to = transfer.place.at(offset);
    const bool by_network = to.network && transport_.fetches_into_network();
    std::byte* bounce = nullptr;
    if (to.pointer == nullptr && !by_network) {
        if (bytes > config_.chunk_bytes) {
            transport_.discard(rendezvous);
            transfer.status = Status::protocol;
            if (transfer.pieces == 0) recv_over(transfer);
            return true;
        }
        bounce = take_bounce(true);
        if (bounce == nullptr) return false;
    }
    Piece* piece = new_piece(nullptr, &transfer, offset, bytes);
    piece->stage = Piece::Stage::fetching;
    piece->bounce = bounce;
    piece->from_recv_pool = true;
    piece->copies = static_cast<std::uint8_t>(copies + (bounce != nullptr ? 1 : 0));
    const Status status =
        by_network ? transport_.fetch_into(rendezvous, to.network, bytes, piece)
                   : transport_.fetch(rendezvous, bounce != nullptr ? bounce : to.pointer, bytes, piece);
    if (status != Status::in_progress) step(*piece, status);
    return true;
}

bool Mover::pump_held() {
    bool moved = false;
    pumping_held_ = true;
    while (!held_.empty()) {
        HeldChunk& chunk = held_.front();
        RecvTransfer* transfer = recvs_.find(chunk.token);
        if (transfer == nullptr || transfer->dead) {
            if (chunk.rendezvous != nullptr) transport_.discard(chunk.rendezvous);
        } else if (chunk.rendezvous != nullptr) {
            if (!fetch(*transfer, chunk.offset, chunk.copies, chunk.bytes, chunk.rendezvous)) break;
        } else if (!store(*transfer, chunk.offset, chunk.copies, chunk.payload)) {
            break;
        }
        held_.pop_front();
        moved = true;
    }
    pumping_held_ = false;
    return moved;
}

void Mover::take(RecvTransfer& transfer, std::span<const std::byte> payload) {
    const std::uint64_t token = transfer.token;
    if (!store(transfer, 0, 1, payload))
        held_.push_back({token, 0, payload.size(), 1, nullptr, {payload.begin(), payload.end()}});
}

void Mover::grant(Peer& sender, std::uint64_t sender_token, const RecvTransfer& transfer) {
    peers_.tell(sender,
                bytes_of(Grant{Kind::grant, chunk_bytes(), sender_token, transfer.token, transfer.bytes}));
}

void Mover::finish(Peer& sender, std::uint64_t sender_token, Status status) {
    peers_.tell(sender, bytes_of(Finished{Kind::finished, static_cast<std::int32_t>(status), sender_token}));
}

bool Mover::on_message(std::span<const std::byte> header, const transport::Incoming* incoming,
                       const Peer& from) {
    switch (kind_of(header)) {
        case Kind::chunk: {
            Chunk chunk;
            if (incoming == nullptr || !read(header, chunk) || incoming->bytes != chunk.bytes) return false;
            on_chunk(chunk, *incoming, from);
            return true;
        }
        case Kind::grant: {
            Grant grant;
            if (!read(header, grant)) return false;
            on_grant(grant, from);
            return true;
        }
        case Kind::finished:
        case Kind::broken: {
            Finished message;
            if (!read(header, message)) return false;
            kind_of(header) == Kind::finished ? on_finished(message, from) : on_broken(message, from);
            return true;
        }
        default:
            return false;
    }
}

void Mover::on_grant(const Grant& grant, const Peer& from) {
    SendTransfer* transfer = sends_.find(grant.sender);
    if (transfer != nullptr && transfer->peer != &from)
        return peers_.refuse("a grant for a transfer that is with another proxy", &from);
    if (grant.receiver == 0) return peers_.refuse("a grant that names no receiver", &from);
    if (transfer == nullptr || transfer->dead || transfer->begun) return;
    transfer->remote_token = grant.receiver;
    transfer->chunk_limit = grant.chunk_limit;
    begin(*transfer);
}

void Mover::on_finished(const Finished& message, const Peer& from) {
    SendTransfer* transfer = sends_.find(message.token);
    if (transfer != nullptr && transfer->peer != &from)
        return peers_.refuse("the end of a transfer that is with another proxy", &from);
    if (transfer == nullptr || transfer->dead) return;
    const auto status = static_cast<Status>(message.status);
    if (is_error(status)) {
        transfer->status = status;
        transfer->next = transfer->bytes;
    } else if (transfer->awaits_end) {
        return confirm(*transfer);
    } else if (transfer->may_be_cut) {
        // The receiver has cut the message short, or wanted none of it. For the sender the transfer is over.
        transfer->moved = transfer->next = transfer->bytes;
    }
    if (transfer->pieces == 0 && (is_error(transfer->status) || transfer->moved == transfer->bytes))
        send_over(*transfer);
}

void Mover::confirm(SendTransfer& transfer) {
    transfer.ended = true;
    transfer.next = transfer.bytes;
    if (transfer.pieces == 0) send_over(transfer);
}

void Mover::on_broken(const Finished& message, const Peer& from) {
    RecvTransfer* transfer = recvs_.find(message.token);
    if (transfer != nullptr && transfer->from != &from)
        return peers_.refuse("the end of a transfer that is with another proxy", &from);
    if (transfer == nullptr || transfer->dead) return;
    const auto status = static_cast<Status>(message.status);
    transfer->status = is_error(status) ? status : Status::protocol;
    if (transfer->pieces == 0) recv_over(*transfer);
}

}  // namespace offpath::engine
