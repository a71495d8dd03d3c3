// Engine::Impl: the engine's state and its verbs, by the file that has them. Internal to the room.
#pragma once

#include "base/log_limit.h"
#include "engine/slab.h"
#include "engine/state.h"

#include <algorithm>
#include <array>
#include <functional>

namespace offpath::engine {

class OneSided;

struct Engine::Impl {
    Impl(Engine& outer, transport::Transport& transport, ProxyId self, const Config& config);
    ~Impl();

    // peers.cpp
    Peer* find_peer(const Session& session, ProxyId id);
    Peer& make_peer(Job& job, ProxyId id);
    Way& way_to(std::span<const std::byte> address);
    void end_job(Job& job);
    // Whoever says it; null: a stranger.
    Peer* sender_of(const Stamp& stamp, std::span<const std::byte> header);
    void refuse(const char* what, const Peer* from);
    template <typename Visit>
    void each_peer(Visit&& visit) {
        for (auto& [id, job] : jobs)
            for (auto& [proxy, peer] : job->peers)
                visit(*peer);
    }
    bool connect(Peer& peer);
    Status transmit(Peer& peer, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                    Completion* completion);
    void tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload = {});
    // By the connection that is there, and whatever comes of it.
    void say(const Peer& peer, std::span<const std::byte> header);
    void not_sent(Peer& peer, Status status);
    void peer_lost(Peer& peer);
    void rank_gone(Session& session, std::uint32_t job_rank, const Peer& proxy);
    void fail_where(Team& team, const std::function<bool(std::uint32_t rank)>& gone);

    // beats.cpp
    void on_beat(const Beat& beat, Peer& from);
    void on_late_message(const Peer& from, std::span<const std::byte> header);
    void mark_awaited();
    void probe_named(std::uint64_t passed_ns, std::uint64_t limit_ns);
    void probe(Peer& peer, std::uint64_t limit_ns);
    void ask(Peer& peer, std::uint64_t passed_ns, std::uint64_t limit_ns);
    void say_farewell(Peer& peer);
    void give_up_silent(Peer& peer);
    void give_up_way(Way& way);

    // engine.cpp
    Team* find_team(const Route& route, bool as_dest);
    bool advance();
    bool pump_copies(bool moved);
    void finish_instance(Instance& instance);

    // instance.cpp
    Status start(Team& team, const Plan& plan, std::uint32_t sequence,
                 std::span<const memory::HostRange> buffers, Completion* done);
    bool run_ready(Instance& instance);
    void start_op(Instance& instance, schedule::OpId op);
    void op_done(Instance& instance, schedule::OpId op);
    void make_ready(Instance& instance, schedule::OpId op);
    void fail(Instance& instance, Status status, bool tell_peers);
    void maybe_finish(Instance& instance);

    // kernel_ops.cpp
    void kernel_step(Instance& instance, schedule::OpId op);
    Location locate(const Instance& instance, const schedule::BufferRef& ref) const {
        return instance.slots[ref.slot].at(ref.offset);
    }

    // reduce_ops.cpp
    void start_reduce(Instance& instance, schedule::OpId op);
    bool pump_passes();
    bool take_turn(ReducePass& pass);
    bool tiles_for(const ReducePass& pass) const;
    void tile_moved(ReducePass& pass, Status status);
    void settle(ReducePass& pass, Status status);
    void give_tiles_back(ReducePass& pass);
    void end_pass(ReducePass& pass);
    void kill(ReducePass* pass);

    // exchange.cpp
    void dispatch(std::span<const std::byte> header, const transport::Incoming* incoming, Peer& from);
    void on_exchange(const Exchange& header, std::span<const std::byte> payload, Peer& from);
    // A message that comes before its time may be kept: there is room for it in its job's share. `team`:
    // whose it is, if that is known.
    bool take_room(Job& job, Team* team, std::size_t payload_bytes);
    void give_room_back(Job& job, Team* team, std::size_t payload_bytes);
    // The rank has sent so much ahead that there is no room: it counts as gone.
    void too_far_ahead(Team& team, std::uint32_t rank);
    void deliver(Instance& instance, const Exchange& header, std::span<const std::byte> payload);
    void on_grant(const Grant& grant, const Peer& from);
    void on_finished(const Finished& finished, const Peer& from);
    void on_broken(const Finished& broken, const Peer& from);
    void launch_send(Instance& instance, schedule::OpId op);
    void start_recv(Instance& instance, schedule::OpId op);
    void place_put(Instance& instance, const Exchange& header);
    void serve_get(Instance& instance, const Exchange& header);

    // basic.cpp
    BasicOp& new_basic(Team& team, const memory::HostRange& buffer, std::uint32_t peer, bool receives,
                       Completion* done);
    Status send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                Completion* done);
    Status recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, std::uint32_t tag,
                MessageInfo* info, Completion* done);
    void on_request(Team& team, const Exchange& header, std::span<const std::byte> payload);
    void take_message(BasicOp& receive, EarlyMessage message);
    void basic_over(BasicOp& basic, Status status);
    void cancel_basics(Team& team, Status status);

    // mail.cpp
    Status mail_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, const MailKey& key,
                     Completion* done);
    Status mail_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, const MailKey& key,
                     MessageInfo* info, Completion* done);
    void mail_cancel(Team& team, std::uint32_t source, const MailKey& key);
    void mail_store(Team& team, std::uint32_t dest, const MailKey& key);
    void on_mail(Team& team, const Exchange& header);
    void on_mail_store(Team& team, const Exchange& header);
    void receive_stored(BasicOp& receive, const std::shared_ptr<StoredMail>& stored);
    void mail_is_stored(StoredMail& stored, Status status);

    // transfer.cpp
    SendTransfer* new_send(Session& session, const Owner& owner, const Location& place, std::uint64_t bytes);
    // `from`: whose chunks it takes.
    RecvTransfer* new_recv(Session& session, const Owner& owner, const Location& place, std::uint64_t bytes,
                           Peer& from);
    void begin(SendTransfer& transfer);
    bool pump(SendTransfer& transfer);
    bool pump_all(std::deque<SendTransfer*>& transfers, std::size_t most);
    bool pump_held();
    void on_chunk(const Chunk& header, const transport::Incoming& incoming, const Peer& from);
    bool store(RecvTransfer& transfer, std::uint64_t offset, std::span<const std::byte> payload);
    bool fetch(RecvTransfer& transfer, std::uint64_t offset, std::size_t bytes, void* rendezvous);
    void step(Piece& piece, Status status);
    void piece_over(Piece& piece, Status status);
    void send_over(SendTransfer& transfer);
    void recv_over(RecvTransfer& transfer);
    void owner_over(const Owner& owner, Status status, bool dead);
    void kill(SendTransfer* transfer);
    void kill(RecvTransfer* transfer);
    void release(SendTransfer& transfer);
    void release(RecvTransfer& transfer);
    Piece* new_piece(SendTransfer* send, RecvTransfer* recv, std::uint64_t offset, std::size_t bytes);
    std::byte* take_bounce(bool recv_pool);

    Engine& outer;
    transport::Transport& transport;
    const ProxyId self;
    const Config config;
    Counters counters;

    Peer me;  // of every job
    std::map<JobId, std::unique_ptr<Job>> jobs;
    std::list<Way> ways;
    std::unordered_map<std::uint64_t, Peer*> passes_here;
    Peer* last_sender = nullptr;
    std::unordered_map<std::uint64_t, Peer> ended_peers;  // of jobs that have ended, by their passes
    LogLimit refusals;
    std::list<std::unique_ptr<Session>> sessions;
    std::unordered_map<TeamKey, Team*, TeamKeyHash> teams;
    std::unordered_map<TeamKey, std::vector<EarlyMessage>, TeamKeyHash> orphans;  // for teams not made yet

    Slab<SendTransfer> sends;
    Slab<RecvTransfer> recvs;
    Slab<Piece> pieces;
    Slab<BasicOp> basics;
    Slab<ReducePass> passes;
    std::deque<ReducePass*> ready_passes;    // have a tile, or can take one
    std::deque<ReducePass*> waiting_passes;  // for buffers
    ScratchPool scratch;
    std::uint64_t stored_bytes = 0;  // of mail

    std::unique_ptr<OneSided> one_sided;

    std::deque<SendTransfer*> active;  // have bytes for the fabric
    std::deque<SendTransfer*>
        copies;  // have bytes for this system's memory: work for when the fabric has its fill
    unsigned rounds_without_copy = 0;
    std::deque<HeldChunk> held;  // wait for a bounce buffer; none that comes later gets one before them
    bool pumping_held = false;   // pump_held() is on the stack
    struct LocalMessage {
        std::array<std::byte, sizeof(Exchange)> bytes;
        std::size_t size;
    };
    std::deque<LocalMessage> local_messages;  // to ranks of this same proxy
    bool closed = false;
    std::uint64_t beaten_ns = 0;  // the last round of beats
    std::vector<Peer*> newly_lost;
    std::vector<transport::Endpoint*> retired;  // to be closed outside of the transport
    std::deque<Instance*> runnable;
    std::vector<Instance*> finished;
    std::vector<BasicOp*> finished_basics;

    std::unique_ptr<std::byte[], void (*)(std::byte*)> arena;
    std::vector<std::byte*> send_bounces, recv_bounces;
    const std::size_t tile_bytes;
    std::vector<std::byte*> tiles;
};

}  // namespace offpath::engine
