// Transfers and the pieces that they are cut into.
//
// Ownership: the mover's slabs own all of them. A transfer is given back only when no piece refers to it;
// `pieces` counts those. Its owner is told once, after the transfer has been given back (TransferOwner).
#pragma once

#include "base/completion.h"
#include "base/shared_parts.h"
#include "engine/mover/peer.h"
#include "engine/shared/config.h"
#include "memory/host_memory.h"
#include "trace/trace.h"

#include <cstdint>
#include <vector>

namespace offpath::engine {

class Mover;
struct SendTransfer;
struct RecvTransfer;

// A host rank as the mover sees it: its memory.
struct MemoryUser {
    memory::HostMemory* memory = nullptr;
    std::size_t pieces = 0;  // in flight, touching its memory
    Copies copies;           // of what has come for it
};

// Where a payload is: behind a pointer, where the network card reaches it, or in host memory that only read()
// and write() reach.
struct Location {
    std::byte* pointer = nullptr;
    NetworkPlace network;
    memory::HostMemory* memory = nullptr;
    memory::HostRange range;
    std::uint64_t offset = 0;

    static Location at_pointer(std::byte* to) {
        Location location;
        location.pointer = to;
        return location;
    }
    // A buffer of a host rank.
    static Location of(memory::HostMemory& its_memory, const memory::HostRange& buffer) {
        Location location;
        location.memory = &its_memory;
        location.range = buffer;
        if (buffer.bytes > 0) location.pointer = its_memory.direct(buffer, 0, buffer.bytes);
        if (buffer.bytes > 0 && location.pointer == nullptr)
            location.network = its_memory.network_place(buffer, 0, buffer.bytes);
        return location;
    }

    Location at(std::uint64_t more) const {
        Location moved = *this;
        moved.offset += more;
        if (moved.pointer != nullptr) moved.pointer += more;
        if (moved.network) moved.network = moved.network.at(more);
        return moved;
    }
    Status read(void* to, std::size_t bytes, Completion* completion) const {
        return memory->read(range, offset, to, bytes, completion);
    }
    Status write(const void* from, std::size_t bytes, Completion* completion) const {
        return memory->write(range, offset, from, bytes, completion);
    }
    // Behind which its first bytes are, or null. If only some of `bytes` lie together there, or not there, it
    // makes them fewer.
    const std::byte* pointer_for_reading(std::size_t& bytes) const {
        if (pointer != nullptr || memory == nullptr || !memory->has_shared_pages() || bytes == 0)
            return pointer;
        const memory::ReadableRun run = memory->readable_run(range, offset, bytes);
        bytes = run.bytes;
        return run.pointer;
    }
    // Whether the host or the network card can copy so many bytes to `to` itself, so that they need not come
    // here.
    bool reaches(const Location& to, std::size_t bytes) const {
        if (network && to.network) return bytes >= least_network_bytes;
        return pointer == nullptr && to.pointer == nullptr && memory != nullptr && memory == to.memory &&
               memory->copies_within(range, to.range);
    }
    Status copy(const Location& to, std::size_t bytes, Completion* completion) const {
        if (network && to.network) return memory->copy_places(network, to.network, bytes, completion);
        return memory->copy(range, offset, to.range, to.offset, bytes, completion);
    }
};

// How a transfer ended. Valid during the call only.
struct TransferEnd {
    bool sent = false;      // a SendTransfer
    std::uint64_t tag = 0;  // the owner's own word for it
    Status status = Status::ok;
    bool dead = false;  // it had been killed
};

// The object that starts a transfer. It is told of the end once.
class TransferOwner {
  public:
    virtual void transfer_over(const TransferEnd& end) = 0;

  protected:
    ~TransferOwner() = default;
};

// An owner of at most one transfer in each direction.
class TransferPair : public TransferOwner {
  public:
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;

    bool moving() const { return send != nullptr || recv != nullptr; }
    // Kills both. moved() is called only for those that end after this call.
    void kill(Mover& mover);
    void transfer_over(const TransferEnd& end) final;

  protected:
    ~TransferPair() = default;
    // One of the two has ended.
    virtual void moved(Status status) = 0;

  private:
    bool killing_ = false;
};

struct Transfer {
    std::uint64_t token = 0;
    TransferOwner* owner = nullptr;
    std::uint64_t tag = 0;
    MemoryUser* user = nullptr;
    Location place;
    std::uint64_t bytes = 0;
    std::uint64_t moved = 0;   // bytes done so far
    std::uint32_t pieces = 0;  // in flight
    Status status = Status::ok;
    bool dead = false;         // the owner is no longer interested
    trace::Kind traced_as{};   // valid if traced is not 0
    std::uint64_t traced = 0;  // its number in the trace; 0: it is not traced
};

struct SendTransfer : Transfer {
    Peer* peer = nullptr;
    std::uint64_t remote_token = 0;
    std::uint64_t next = 0;  // first byte of the next piece
    std::uint32_t chunk_limit = 0, most_pieces = 0;
    std::size_t least_from_network = SIZE_MAX;  // the fabric takes smaller pieces from pointers only
    bool begun = false;
    bool queued = false;
    // The owners at both ends tell each other of failures. A receiver that is gone sends a message of its
    // own, and the receiver is not told that the rest will not come.
    bool ends_are_told = false;
    bool may_be_cut = false;          // the receiver may accept fewer bytes without error
    bool awaits_end = false;          // not over before the receiver's proxy says so (Kind::finished)
    bool ended = false;               // it has said so
    RecvTransfer* partner = nullptr;  // receiver served by this same engine
    bool local = false;               // `partner` or `copy_to` is the destination
    Location copy_to;
    // Of a local one of which the rank makes some parts: `next` is in the last part taken here, and `taken`
    // are its bytes from there on. `moved` counts those moved here.
    shared_parts::Word* parts = nullptr;
    std::uint64_t taken = 0;
    void reset() { *this = SendTransfer{}; }
};

struct RecvTransfer : Transfer {
    Peer* from = nullptr;  // the proxy that sends it; null: this one
    SendTransfer* partner = nullptr;
    void reset() { *this = RecvTransfer{}; }
};

// A part of a transfer in progress. Stages: send: reading -> sending; local: reading -> writing; receive:
// fetching -> storing.
struct Piece : Completion {
    enum class Stage : std::uint8_t { reading, writing, sending, fetching, storing } stage = Stage::reading;
    bool from_recv_pool = false;
    std::uint8_t copies = 0;  // made of its bytes by this process, or, of one received, by both
    std::uint64_t token = 0;
    Mover* mover = nullptr;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    const std::byte* source = nullptr;  // what is sent from here; null: `bounce`, or a place in the network
    std::byte* bounce = nullptr;
    MemoryUser* users[2] = {nullptr, nullptr};  // whose memory it touches
    void reset() { *this = Piece{}; }
};

// A chunk that arrived when no bounce buffer was free.
struct HeldChunk {
    std::uint64_t token = 0, offset = 0;
    std::size_t bytes = 0;
    std::uint8_t copies = 0;  // made by the sender
    void* rendezvous = nullptr;
    std::vector<std::byte> payload;
};

}  // namespace offpath::engine
