// Payload that arrives: with its message, or fetched once there is a place for it.
#include "base/log.h"
#include "engine/impl.h"

namespace offpath::engine {

void Engine::Impl::on_chunk(const Chunk& header, const transport::Incoming& incoming, const Peer& from) {
    RecvTransfer* transfer = recvs.find(header.token);
    if (transfer != nullptr && transfer->from != &from) {
        if (incoming.rendezvous != nullptr) transport.discard(incoming.rendezvous);
        return refuse("a chunk of a transfer that is with another proxy", &from);
    }
    const bool fits = transfer != nullptr && header.offset <= transfer->bytes &&
                      incoming.bytes <= transfer->bytes - header.offset &&
                      transfer->moved + incoming.bytes <= transfer->bytes;
    if (!fits || transfer->dead) {
        if (incoming.rendezvous != nullptr) transport.discard(incoming.rendezvous);
        if (transfer != nullptr && !fits) {
            log::error("a chunk of {} bytes at {} leaves its transfer of {} bytes", incoming.bytes,
                       header.offset, transfer->bytes);
            transfer->status = Status::protocol;
            if (transfer->pieces == 0) recv_over(*transfer);
        }
        return;
    }
    if (incoming.rendezvous != nullptr) {
        if (!fetch(*transfer, header.offset, incoming.bytes, incoming.rendezvous)) {
            held.push_back({header.token, header.offset, incoming.bytes, incoming.rendezvous, {}});
        }
    } else if (!store(*transfer, header.offset, {incoming.data, incoming.bytes})) {
        held.push_back({header.token,
                        header.offset,
                        incoming.bytes,
                        nullptr,
                        {incoming.data, incoming.data + incoming.bytes}});
    }
}

// False: no bounce buffer is free, nothing was done.
bool Engine::Impl::store(RecvTransfer& transfer, std::uint64_t offset, std::span<const std::byte> payload) {
    const Location to = transfer.place.at(offset);
    const bool immediate = to.pointer != nullptr || to.memory->back_end(to.range) == memory::BackEnd::cma;
    std::byte* bounce = nullptr;
    if (!immediate) {
        if (payload.size() > config.chunk_bytes) {
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
    Status status = Status::ok;
    if (to.pointer != nullptr) {
        std::memcpy(to.pointer, payload.data(), payload.size());
    } else {
        status = to.write(bounce != nullptr ? bounce : payload.data(), payload.size(), piece);
    }
    if (status != Status::in_progress) step(*piece, status);
    return true;
}

// False: no bounce buffer is free, nothing was done.
bool Engine::Impl::fetch(RecvTransfer& transfer, std::uint64_t offset, std::size_t bytes, void* rendezvous) {
    const Location to = transfer.place.at(offset);
    std::byte* bounce = nullptr;
    if (to.pointer == nullptr) {
        if (bytes > config.chunk_bytes) {
            transport.discard(rendezvous);
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
    const Status status = transport.fetch(rendezvous, bounce != nullptr ? bounce : to.pointer, bytes, piece);
    if (status != Status::in_progress) step(*piece, status);
    return true;
}

bool Engine::Impl::pump_held() {
    bool moved = false;
    pumping_held = true;
    while (!held.empty()) {
        HeldChunk& chunk = held.front();
        RecvTransfer* transfer = recvs.find(chunk.token);
        if (transfer == nullptr || transfer->dead) {
            if (chunk.rendezvous != nullptr) transport.discard(chunk.rendezvous);
        } else if (chunk.rendezvous != nullptr) {
            if (!fetch(*transfer, chunk.offset, chunk.bytes, chunk.rendezvous)) break;
        } else if (!store(*transfer, chunk.offset, chunk.payload)) {
            break;
        }
        held.pop_front();
        moved = true;
    }
    pumping_held = false;
    return moved;
}

}  // namespace offpath::engine
