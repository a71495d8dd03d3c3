// The engine's records: peers, sessions, teams, running instances, transfers and the pieces that they are cut
// into.
//
// Who owns whom: Engine::Impl owns jobs, ways, sessions and the slabs; a job owns its peers; a session owns
// its teams; a team owns its running instances (a plan keeps them between runs). A transfer belongs to an op,
// a basic operation, a part of a call on a window or a visit there (onesided.h), or is a guest of an instance
// (the far side of a put or get). A record is given back only when no piece refers to it: `pieces` counts
// those.
#pragma once

#include "engine/engine.h"
#include "engine/messages.h"
#include "engine/scratch_pool.h"

#include <deque>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace offpath::engine {

struct Instance;
struct BasicOp;
struct MessagePart;
struct Visit;
struct SendTransfer;
struct RecvTransfer;

// How a proxy is reached. Peers of several jobs share one, if those jobs say the same address.
struct Way {
    std::vector<std::byte> address;
    transport::Endpoint* endpoint = nullptr;
    bool lost = false;
    // beats.cpp
    bool probing = false;          // its endpoint was made to see who is there: nothing depends on it yet
    bool failed = false;           // that endpoint, or the attempt to make it
    std::uint64_t failing_ns = 0;  // since the first of those failures
    bool doubted = false;          // operations here depend on a peer on it, or one was given up
    bool given_up = false;         // a peer on it was
    bool answers = false;          // or may do so yet: to one of its peers
};

// A proxy, for one job: the job's ranks say where it is, and the passes prove that it belongs to the job.
struct Peer {
    ProxyId id = 0;
    JobId job;
    bool self = false;
    bool lost = false;
    Way* way = nullptr;  // null: it has spoken, and no rank here has said where it is
    std::uint64_t pass_there = 0, pass_here = 0;
    // beats.cpp
    bool awaited = false;         // operations here depend on it
    bool named = false;           // one of them on it alone
    bool asked = false;           // a question is open
    bool has_answered = false;    // ever: before, it may not know us yet
    std::uint64_t silent_ns = 0;  // since the question

    transport::Endpoint* endpoint() const { return way == nullptr ? nullptr : way->endpoint; }
};

// A job with sessions here.
struct Job {
    JobId id;
    JobSecret secret{};
    std::size_t sessions = 0;
    std::uint64_t early_bytes = 0;  // of messages that wait, for whatever team
    std::unordered_map<ProxyId, std::unique_ptr<Peer>> peers;
};

// Where a payload lies: behind a pointer, or in host memory that only read and write reach.
struct Location {
    std::byte* pointer = nullptr;
    memory::HostMemory* memory = nullptr;
    memory::HostRange range;
    std::uint64_t offset = 0;

    Location at(std::uint64_t more) const {
        Location moved = *this;
        moved.offset += more;
        if (moved.pointer != nullptr) moved.pointer += more;
        return moved;
    }
    Status read(void* to, std::size_t bytes, Completion* completion) const {
        return memory->read(range, offset, to, bytes, completion);
    }
    Status write(const void* from, std::size_t bytes, Completion* completion) const {
        return memory->write(range, offset, from, bytes, completion);
    }
    // Whether the bytes can go to `to` without coming here.
    bool reaches(const Location& to) const {
        return pointer == nullptr && to.pointer == nullptr && memory != nullptr && memory == to.memory &&
               memory->copies_within(range, to.range);
    }
    Status copy(const Location& to, std::size_t bytes, Completion* completion) const {
        return memory->copy(range, offset, to.range, to.offset, bytes, completion);
    }
};

// Whom to tell when a transfer is over.
struct Owner {
    enum class Kind : std::uint8_t { none, op, guest, basic, part, visit } kind = Kind::none;
    schedule::OpId op = 0;
    Instance* instance = nullptr;  // op, guest
    BasicOp* basic = nullptr;
    MessagePart* part = nullptr;
    Visit* visit = nullptr;
};

struct Transfer {
    std::uint64_t token = 0;
    Owner owner;
    Session* session = nullptr;
    Location place;
    std::uint64_t bytes = 0;
    std::uint64_t moved = 0;   // of which done
    std::uint32_t pieces = 0;  // in flight
    Status status = Status::ok;
    bool dead = false;  // its owner is not interested any more
};

struct SendTransfer : Transfer {
    Peer* peer = nullptr;
    std::uint64_t remote_token = 0;
    std::uint64_t next = 0;  // first byte of the next piece
    std::uint32_t chunk_limit = 0;
    bool queued = false;
    bool awaits_finished = false;     // put: done when the target says so
    RecvTransfer* partner = nullptr;  // receiver served by this same engine
    bool local = false;               // partner or `copy_to` says where the data go
    Location copy_to;
    void reset() { *this = SendTransfer{}; }
};

struct RecvTransfer : Transfer {
    Peer* from = nullptr;    // who sends it; null: it comes from here
    Peer* notify = nullptr;  // put: whom to tell when everything is there
    std::uint64_t notify_token = 0;
    SendTransfer* partner = nullptr;
    void reset() { *this = RecvTransfer{}; }
};

// A part of a transfer on its way. Stages: send: reading -> sending; local: reading -> writing; receive:
// fetching -> storing.
struct Piece : Completion {
    enum class Stage : std::uint8_t { reading, writing, sending, fetching, storing } stage = Stage::reading;
    bool from_recv_pool = false;
    std::uint64_t token = 0;
    Engine::Impl* engine = nullptr;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    std::byte* bounce = nullptr;
    Session* sessions[2] = {nullptr, nullptr};  // whose memory it touches
    void reset() { *this = Piece{}; }
};

// A chunk that came while no bounce buffer was free.
struct HeldChunk {
    std::uint64_t token = 0, offset = 0;
    std::size_t bytes = 0;
    void* rendezvous = nullptr;
    std::vector<std::byte> payload;
};

struct EarlyMessage {
    Exchange header{};
    std::vector<std::byte> payload;
    Peer* from = nullptr;  // who said it; set where that has not been checked against the route yet

    // What one takes, with its place in a list or a map.
    static std::uint64_t room(std::size_t payload_bytes) { return sizeof(EarlyMessage) + 64 + payload_bytes; }
};

// A sender and its key.
struct MailAddress {
    std::uint32_t source = 0;
    MailKey key;
    friend bool operator==(const MailAddress&, const MailAddress&) = default;
};
struct MailAddressHash {
    std::size_t operator()(const MailAddress& at) const {
        std::uint64_t hash = (at.key.low + 0x9E3779B97F4A7C15ull * (at.source + 1)) ^ (at.key.high << 17);
        hash *= 0xBF58476D1CE4E5B9ull;
        return hash ^ (hash >> 31);
    }
};

// Mail that was taken in before its receive came: on its way here, or here. Kept by the team, then by the
// receive that it goes on to.
struct StoredMail : Completion {
    StoredMail(Engine::Impl& impl, Team& its_team, const Exchange& announced,
               std::unique_ptr<std::byte[]> room);
    ~StoredMail();
    StoredMail(const StoredMail&) = delete;
    StoredMail& operator=(const StoredMail&) = delete;

    Engine::Impl& engine;
    Team& team;
    const Exchange header;
    std::unique_ptr<std::byte[]> bytes;
    bool here = false;
    BasicOp* receive = nullptr;  // waits until it is here
};

// A basic operation, or mail.
struct BasicOp {
    std::uint64_t token = 0;
    Team* team = nullptr;
    bool receives = false;
    bool wanted = false;  // mail: a receive that no message has met
    MailKey key;
    std::shared_ptr<StoredMail> kept;  // what it reads from or writes to
    Completion* done = nullptr;
    MessageInfo* info = nullptr;
    memory::HostRange buffer;
    std::uint32_t peer = 0, tag = 0;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    Status status = Status::ok;
    bool over = false;
    void reset() { *this = BasicOp{}; }
};

// A reduce op whose operands come here in tiles.
struct ReducePass : Completion {
    enum class Stage : std::uint8_t { idle, loading, storing } stage = Stage::idle;
    bool dead = false;  // its instance has failed
    std::uint8_t moving = 0;
    std::uint64_t token = 0;
    Engine::Impl* engine = nullptr;
    Instance* instance = nullptr;
    schedule::OpId op = 0;
    std::uint64_t offset = 0;  // of the tile
    std::byte *src_tile = nullptr, *dst_tile = nullptr;
    Status status = Status::ok;
    void reset() { *this = ReducePass{}; }
};

// How far an op of an instance is.
struct OpRun {
    enum class Phase : std::uint8_t { waiting, active, done } phase = Phase::waiting;
    bool has_ready = false;
    bool has_eager = false;
    std::uint32_t remaining = 0;  // dependencies
    std::uint32_t chunk_limit = 0;
    std::uint64_t remote_token = 0, remote_bytes = 0;
    std::vector<std::byte> eager;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    ReducePass* pass = nullptr;
    std::uint8_t kernel_step = 0;
    std::vector<std::byte> kernel_src, kernel_dst;  // copies of operands that have no pointer
};

struct Instance {
    const Plan* plan = nullptr;
    Team* team = nullptr;
    std::uint32_t sequence = 0;
    Completion* done = nullptr;
    Status status = Status::ok;
    bool failing = false, queued = false, finishing = false;
    std::size_t left = 0;   // ops not done
    std::size_t holds = 0;  // transfers that are not given back
    std::vector<OpRun> runs;
    std::vector<schedule::OpId> ready;
    std::vector<Location> slots;
    std::vector<ScratchPool::Buffer> scratch;
    std::unordered_map<std::uint64_t, std::uint64_t> signals;
    std::vector<schedule::OpId> waits;
    std::vector<SendTransfer*> guest_sends;
    std::vector<RecvTransfer*> guest_recvs;
};

class Team {
  public:
    Session* session = nullptr;
    std::uint64_t id = 0;
    std::uint32_t rank = 0;
    std::vector<Peer*> peers;              // by team rank
    std::vector<std::uint32_t> job_ranks;  // likewise
    std::uint32_t next_sequence = 0;
    std::unordered_map<std::uint32_t, std::unique_ptr<Instance>> instances;
    std::unordered_map<std::uint32_t, std::vector<EarlyMessage>> early;
    matching::Matcher matcher;
    std::vector<std::uint32_t> send_order;                         // next number, by destination
    std::vector<matching::OrderGate<EarlyMessage>> receive_order;  // by source
    std::unordered_map<std::uint64_t, EarlyMessage> arrived;  // requests that wait in the matcher, by cookie
    std::uint64_t next_cookie = 1;
    std::unordered_map<MailAddress, BasicOp*, MailAddressHash> mail_wanted;
    std::unordered_map<MailAddress, Exchange, MailAddressHash> mail_arrived;
    std::unordered_map<MailAddress, std::shared_ptr<StoredMail>, MailAddressHash> mail_stored;
    std::unordered_set<BasicOp*> basics;
    std::vector<bool> left;  // ranks that are gone, by team rank; empty: none
    std::size_t windows = 0;
    std::uint64_t early_bytes = 0;  // its share of the job's
    bool destroyed = false;

    bool idle() const { return instances.empty() && basics.empty() && windows == 0; }
    // Returns whether that rank of the job, served by that proxy, is a member.
    bool mark_gone(std::uint32_t job_rank, const Peer* proxy);
    // Whether the rank, or the proxy that serves it, is no more.
    bool gone(std::uint32_t member) const { return peers[member]->lost || (!left.empty() && left[member]); }
    bool any_gone() const {
        for (std::uint32_t member = 0; member < peers.size(); ++member)
            if (gone(member)) return true;
        return false;
    }
    Route route_to(std::uint32_t dest) const;
};

class Session {
  public:
    JobId job;
    Job* its_job = nullptr;
    std::uint32_t job_rank = 0;
    memory::HostMemory* memory = nullptr;
    std::list<std::unique_ptr<Team>> teams;
    std::unordered_set<Peer*> acquaintances;               // proxies of its job
    std::set<std::pair<std::uint32_t, const Peer*>> gone;  // ranks of the job that have left, and whose
    std::size_t pieces = 0;                                // in flight, touching this session's memory
    bool closing = false;
};

inline Route Team::route_to(std::uint32_t dest) const {
    return {session->job.high, session->job.low, id, rank, dest};
}

// A buffer of the team's rank.
inline Location whole(const Team& team, const memory::HostRange& buffer) {
    Location location;
    location.memory = team.session->memory;
    location.range = buffer;
    if (buffer.bytes > 0) location.pointer = location.memory->direct(buffer, 0, buffer.bytes);
    return location;
}

// Finds teams by who is addressed.
struct TeamKey {
    std::uint64_t job_high, job_low, team;
    std::uint32_t rank;
    friend bool operator==(const TeamKey&, const TeamKey&) = default;
};
struct TeamKeyHash {
    std::size_t operator()(const TeamKey& key) const {
        std::uint64_t hash = key.job_low ^ (key.team + 0x9E3779B97F4A7C15ull + (key.job_high << 6));
        hash = (hash ^ key.rank) * 0xBF58476D1CE4E5B9ull;
        return hash ^ (hash >> 31);
    }
};

}  // namespace offpath::engine
