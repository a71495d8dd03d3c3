// Mover: moves bytes from the memory of one host rank to that of another, served here or by another proxy.
// Memory without a pointer goes through bounce buffers. The mover does not know why bytes move: the owner
// that starts a transfer learns of its end (TransferOwner) and may kill it earlier.
//
// A transfer between proxies has two halves that know each other's token. The sending half waits for the
// receiving half's token, which a Grant or a message of the owner brings. begin() then sends the payload in
// chunks. When both halves are in this engine they are joined, and the bytes are copied once.
//
// Ownership: owns transfers, pieces and bounce buffers. Threads: the engine's. Fast path: nothing is
// allocated once the slabs have grown.
#pragma once

#include "base/random_numbers.h"
#include "engine/mover/peers.h"
#include "engine/mover/slab.h"
#include "engine/mover/transfer.h"

#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace offpath::engine {

class Mover {
  public:
    Mover(transport::Transport& transport, Peers& peers, RandomNumbers& random, const Config& config,
          Counters& counters, bool yields);
    Mover(const Mover&) = delete;
    Mover& operator=(const Mover&) = delete;

    SendTransfer* new_send(MemoryUser& user, TransferOwner& owner, std::uint64_t tag, const Location& place,
                           std::uint64_t bytes);
    // `from`: the proxy whose chunks the transfer accepts.
    RecvTransfer* new_recv(MemoryUser& user, TransferOwner& owner, std::uint64_t tag, const Location& place,
                           std::uint64_t bytes, Peer& from);
    // Both ends are ready; the payload may move.
    void begin(SendTransfer& transfer);
    // Copies to `to` on this system. Begins at once.
    void begin_copy(SendTransfer& transfer, const Location& to);
    // The whole payload has come with a message. The transfer may be over afterwards.
    void take(RecvTransfer& transfer, std::span<const std::byte> payload);
    // The owner is no longer interested. It is notified once nothing is in flight, perhaps inside this call.
    void kill(SendTransfer* transfer);
    void kill(RecvTransfer* transfer);

    // Tells the sender which transfer takes its payload.
    void grant(Peer& sender, std::uint64_t sender_token, const RecvTransfer& transfer);
    // Tells the sender that its payload is not needed, or no more of it.
    void finish(Peer& sender, std::uint64_t sender_token, Status status);
    // The receiver of a transfer that awaits its end has all of it.
    void confirm(SendTransfer& transfer);

    // Handles a message of the mover's kinds. False: it is of another kind, or malformed; its payload has not
    // been consumed.
    bool on_message(std::span<const std::byte> header, const transport::Incoming* incoming, const Peer& from);

    // Steps of a round. Each returns whether anything moved.
    bool pump_held();    // chunks that waited for a bounce buffer
    bool pump_active();  // at most one piece of each transfer that has bytes for a link
    // Copies in memory use this core's time but no link. They wait until the links are busy, including those
    // of other proxies on the same core, but only for a bounded number of rounds. `moved`: something else has
    // moved in this round. `at_once`: the rest of the round is such work itself.
    bool pump_copies(bool moved, bool at_once);

    std::uint32_t chunk_bytes() const { return static_cast<std::uint32_t>(config_.chunk_bytes); }
    // Frees memory that is kept for later transfers, if there are no transfers now.
    void trim();

  private:
    bool pump(SendTransfer& transfer);
    bool take_part(SendTransfer& transfer);
    static std::size_t next_bytes(const SendTransfer& transfer);
    bool pump_all(std::deque<SendTransfer*>& transfers, std::size_t most);
    void step(Piece& piece, Status status);
    void piece_over(Piece& piece, Status status);
    void send_over(SendTransfer& transfer);
    void recv_over(RecvTransfer& transfer);
    Piece* new_piece(SendTransfer* send, RecvTransfer* recv, std::uint64_t offset, std::size_t bytes);
    std::byte* take_bounce(bool recv_pool);
    // receive.cpp
    void on_chunk(const Chunk& header, const transport::Incoming& incoming, const Peer& from);
    bool store(RecvTransfer& transfer, std::uint64_t offset, std::uint8_t copies,
               std::span<const std::byte> payload);
    bool fetch(RecvTransfer& transfer, std::uint64_t offset, std::uint8_t copies, std::size_t bytes,
               void* rendezvous);
    void on_grant(const Grant& grant, const Peer& from);
    void on_finished(const Finished& finished, const Peer& from);
    void on_broken(const Finished& broken, const Peer& from);

    transport::Transport& transport_;
    Peers& peers_;
    const Config& config_;
    Counters& counters_;
    const bool yields_;
    Slab<SendTransfer> sends_;
    Slab<RecvTransfer> recvs_;
    Slab<Piece> pieces_;
    std::deque<SendTransfer*> active_;  // have bytes for the fabric
    std::deque<SendTransfer*> copies_;  // have bytes for this system's memory
    unsigned rounds_without_copy_ = 0;
    std::deque<HeldChunk> held_;  // waiting for a bounce buffer; later chunks queue behind them
    bool pumping_held_ = false;   // pump_held() is on the stack
    std::unique_ptr<std::byte[], void (*)(std::byte*)> arena_;
    std::vector<std::byte*> send_bounces_, recv_bounces_;
};

}  // namespace offpath::engine
