// OneSided: puts, gets, updates and locks on windows, as the engine executes them. Internal to the room.
//
// Two halves. At the origin: a Call is what was asked for, cut into Parts, one message each; the parts of the
// calls to one target go out in order, a bounded number at a time. At the owner, the engine that serves the
// target: the messages of one origin are put back in order, and each becomes a Visit that moves bytes between
// the origin's engine and the window's memory. Updates wait in their origin's lane until their operands are
// there; one update at a time touches the memory of a window. Every part is answered once it is done at the
// target, so that a flush is a count (rma/epochs.h). Visits get memory in the order of arrival, up to
// Config::visit_bytes for all: one that has it waits for none that has not, since its lane arrived before it.
// A message that is ordered is held back, and with it those behind it, until the visits before it in its
// lane are over; what is held back has no memory and no place in other queues, so nobody waits for it. What
// comes out of order or is held back counts among its job's messages that wait (Config::early_bytes).
// What touches the memory of windows takes turns: after a bounded amount of work in a round, visits of
// several pieces or of many bytes wait for the next one, each lane and the updates of each window in their
// own queue. A visit is done whole, so updates are as atomic to each other as before (onesided_turns.cpp).
// What is said to one proxy in a round of work travels together, up to bundle_bytes (onesided_bundle.cpp);
// the sequence numbers are the messages' own. A small put or get of memory that has a pointer is no visit: it
// is done when it is its turn. So is what a host rank asks without its own proxy (rma/direct.h): it is done
// at once where the memory has a pointer and no update of it is under way, else refused; its order to visits
// is the rank's business.
//
// Ownership: the slabs own calls, parts and visits; a window owns its lanes and queues. Threads: the
// engine's. Payload moves by the engine's transfers; whatever ends inside a call of theirs is put into a list
// and seen to in advance().
#pragma once

#include "engine/impl.h"
#include "rma/epochs.h"
#include "rma/locks.h"
#include "rma/parts.h"
#include "rma/ranges.h"

#include <deque>
#include <map>

namespace offpath::engine {

struct Call;
struct Visit;

struct OneSidedRequest {
    OneSidedHeader header{};
    std::span<const std::byte> payload;  // segments, then operands
    std::vector<std::byte> own;          // the payload, if it is kept longer than its message
    bool counted = false;                // among what waits for its time (Config::early_bytes)

    void keep() {
        if (!own.empty() || payload.empty()) return;
        own.assign(payload.begin(), payload.end());
        payload = own;
    }
};

class Window {
  public:
    Team* team = nullptr;
    std::uint64_t id = 0;
    bool dynamic = false, ending = false;
    Completion* ended = nullptr;
    rma::Ranges ranges;
    struct Detach {
        std::uint64_t begin = 0;
        Completion* done = nullptr;
    };
    std::vector<Detach> detaches;

    // The origin's half, by target.
    struct Target {
        std::uint32_t sequence = 0;
        std::uint32_t parts = 0;         // under way
        std::uint64_t pieces = 0;        // of theirs
        std::uint64_t owner_memory = 0;  // that they take at the owner
        std::deque<Call*> queue;
        rma::Epochs epochs;
    };
    std::vector<Target> targets;
    std::unordered_set<Call*> calls;

    // The owner's half, by origin.
    struct Lane {
        matching::OrderGate<OneSidedRequest> gate;
        std::deque<Visit*> updates;
        bool due = false;
        std::deque<Visit*> in_turns;       // puts and gets that wait for their turn
        std::uint32_t visits = 0;          // begun and not over
        std::deque<OneSidedRequest> held;  // the first is ordered; none goes before the visits are over
    };
    std::vector<Lane> lanes;
    std::deque<std::uint32_t> due;  // origins whose first update may be done
    bool updating = false;          // one is, by memory that answers later
    bool running_updates = false;   // run_updates() is on the stack
    bool updates_in_turns = false;  // they wait for their turn
    rma::LockQueue lock;
    std::unordered_set<Visit*> visits;
    std::size_t held = 0;           // in all lanes
    std::uint64_t early_bytes = 0;  // of its job's: what the lanes keep

    Session& session() const { return *team->session; }
    bool idle() const { return calls.empty() && visits.empty() && held == 0; }
};

struct Call {
    std::uint64_t token = 0;
    Window* window = nullptr;
    rma::OpKind kind = rma::OpKind::put;
    schedule::DataType type = schedule::DataType::none;
    std::uint8_t reduction = 0;
    std::uint32_t target = 0;
    rma::Parts rest;
    memory::HostRange origin, result;
    std::vector<std::byte> inlined;
    std::uint64_t epoch = 0;
    bool asked = false;    // a lock's only message is out
    bool ordered = false;  // of its next message
    bool over = false, watched = false;
    std::unordered_set<MessagePart*> parts;
    Status status = Status::ok;
    Completion* done = nullptr;
    void reset() { *this = Call{}; }
};

// A message of a call, until it is answered.
struct MessagePart {
    std::uint64_t token = 0;
    Call* call = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t pieces = 0;
    std::uint64_t owner_memory = 0;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    bool answered = false, over = false, ending = false;
    void reset() { *this = MessagePart{}; }
};

// A part at the owner.
struct Visit : Completion {
    std::uint64_t token = 0;
    OneSided* home = nullptr;
    Window* window = nullptr;
    std::uint32_t origin = 0;
    rma::OpKind kind = rma::OpKind::put;
    schedule::DataType type = schedule::DataType::none;
    std::uint8_t reduction = 0;
    std::uint64_t bytes = 0, part = 0, sender = 0, receiver = 0;
    std::uint64_t memory = 0;  // of ours, for operands and result
    std::vector<rma::Segment> segments;
    std::vector<memory::HostRange> places;    // of the segments
    std::vector<rma::Ranges::Range*> ranges;  // in which they lie, held
    std::vector<std::byte> operands, fetched, updated;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    enum class Stage : std::uint8_t { arriving, reading, writing, returning, over } stage = Stage::arriving;
    bool in_lane = false, has_arrived = false, updates = false, admitted = false;
    bool ending = false, listed = false, returned_apart = false, in_turns = false;
    std::uint32_t accesses = 0;  // of memory that answers later
    Status status = Status::ok;
    // It costs no more than its message.
    bool small() const { return segments.size() == 1 && bytes <= rma::inline_bytes; }
    void reset() { *this = Visit{}; }
};

// target <- target (reduction) operands, for `bytes` of whole elements; onesided_update.cpp.
Status apply_update(rma::OpKind kind, schedule::DataType type, std::uint8_t reduction,
                    const std::byte* operands, std::byte* target, std::size_t bytes);

class OneSided {
  public:
    explicit OneSided(Engine::Impl& engine) : engine_(engine) {}

    // onesided_window.cpp
    Status create(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                  Window** window);
    Status attach(Window& window, const memory::HostRange& memory, std::uint64_t begin);
    Status detach(Window& window, std::uint64_t begin, Completion* done);
    Status destroy(Window& window, Completion* done);
    void fail_where(Team& team, const std::function<bool(std::uint32_t rank)>& gone);
    void cancel(Session& session, Status reason);
    void forget(Session& session);
    std::size_t outstanding(const Session& session) const;

    // onesided_origin.cpp
    Status start(Window& window, OneSidedCall call, Completion* done);
    void failed(Window& window, std::uint32_t target, Status status);
    Status flush(Window& window, std::uint32_t target, Completion* done);
    void part_moved(MessagePart& part, Status status);

    // onesided_owner.cpp
    void dispatch(std::span<const std::byte> header, const transport::Incoming* incoming, Peer& from);
    void visit_moved(Visit& visit, Status status);

    // onesided_direct.cpp
    Status at_once(const DirectOperation& call, std::span<const std::byte>& result);

    // onesided_bundle.cpp
    void take_bundle(std::span<const std::byte> header, const transport::Incoming& incoming, Peer& from);
    // The peer ends: nothing that is on its way from it counts any more.
    void forget(const Peer& peer);
    // What was gathered goes out, at the end of a round. Whether there was any.
    bool send_bundles();

    // onesided_turns.cpp
    // A round of work begins, and with it a new share of work at windows. Returns whether anything was done.
    bool begin_round();
    // The round's share is used up.
    bool spent() const;

    // Gives back what is kept for the next operations.
    void trim();

    bool advance();
    bool has_work() const {
        return !local_.empty() || !stepped_.empty() || !calls_over_.empty() || !flushes_over_.empty() ||
               !unsettled_.empty() || !released_.empty() || !gathered_.empty() || !turns_.empty();
    }

  private:
    // onesided_window.cpp
    void settle(Window& window);
    void drop(const Window& window);
    Window* find(const Route& route, std::uint64_t id, bool as_dest);

    // onesided_origin.cpp
    void pump(Window& window, std::uint32_t target);
    void send_part(Call& call);
    void on_answer(const OneSidedAnswer& answer, std::span<const std::byte> payload, Peer& from);
    void end_part(MessagePart& part, Status status);
    void end_call(Call& call);
    void fail_call(Call& call, Status status);
    struct FlushOf : rma::Flush {
        std::uint64_t token = 0;
        Completion* done = nullptr;
        void reset() { *this = FlushOf{}; }
    };

    // onesided_bundle.cpp
    struct Bundle {
        Peer* peer = nullptr;
        std::uint32_t messages = 0;
        std::vector<std::byte> bytes;
    };
    // One that the transport reads, or brings.
    struct Parcel : Completion {
        std::uint64_t token = 0;
        OneSided* home = nullptr;
        Peer* from = nullptr;  // who sends it; null: it goes out, or nobody is interested any more
        OneSidedBundle header{};
        std::vector<std::byte> bytes;
        void reset() { *this = Parcel{}; }
    };
    // The payload in two pieces.
    void tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload,
              std::span<const std::byte> more = {});
    void send(Bundle& bundle);
    void send_large(Bundle& bundle);
    Parcel& new_parcel(std::vector<std::byte> bytes);
    void parcel_over(Parcel& parcel, Status status);
    void dispatch_bundle(OneSidedBundle bundle, std::span<const std::byte> payload, Peer& from);
    std::vector<std::byte> spare_buffer();

    // onesided_owner.cpp
    void answer(Peer& peer, std::uint64_t part, Status status, std::span<const std::byte> payload = {});
    void on_request(const OneSidedHeader& header, std::span<const std::byte> payload, Peer& from);
    bool keep(Window& window, OneSidedRequest& request);
    void let_go(Window& window, std::size_t payload_bytes);
    void take_turn(Window& window, OneSidedRequest request);
    void release(Window& window, std::uint32_t origin);
    void accept(Window& window, const OneSidedRequest& request);
    bool done_at_once(Window& window, const OneSidedRequest& request);
    void accept_lock(Window& window, const OneSidedHeader& header);
    void begin_visit(Visit& visit, std::span<const std::byte> carried);
    void admit();
    void proceed(Visit& visit);
    void receive_operands(Visit& visit);
    bool resolve(Visit& visit);
    Location place(const Visit& visit, std::size_t segment) const;
    void give_back(Visit& visit);
    void end_visit(Visit& visit, Status status);
    Peer& peer_of(const Visit& visit) const { return *visit.window->team->peers[visit.origin]; }

    // onesided_direct.cpp
    Status update(const DirectOperation& call, std::byte* place, std::span<const std::byte>& result);
    Status across_ranges(Window& window, const DirectOperation& call, std::span<const std::byte>& result);
    Status lock_at_once(Window& window, const DirectOperation& call);

    // onesided_turns.cpp
    bool may_begin(const Visit& visit) const;
    void touch(Visit& visit);
    void wait_for_turn(Window& window);
    void leave_turns(Visit& visit);
    void account(const Visit& visit);

    // onesided_update.cpp
    void step(Visit& visit);
    void arrived(Visit& visit);
    void begin_access(Visit& visit);
    Visit* next_update(Window& window);
    // `its_turn`: one that is not small may be done though others wait.
    void run_updates(Window& window, bool its_turn = false);
    bool reach(Visit& visit, std::byte* bytes, bool writes);
    void look_at_lane(Window& window, std::uint32_t origin);
    bool update_in_place(Visit& visit);
    void return_fetched(Visit& visit);

    Engine::Impl& engine_;
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t>,
             std::unique_ptr<Window>>
        windows_;  // by job, team, rank and id
    Slab<Call> calls_;
    Slab<MessagePart> parts_;
    Slab<Visit> visits_;
    Slab<FlushOf> flushes_;
    struct Local {
        std::vector<std::byte> header, payload;
    };
    std::vector<Bundle> gathered_;  // one a peer
    std::vector<std::vector<std::byte>> spare_;
    Slab<Parcel> parcels_;
    std::deque<Local> local_;     // between ranks of this engine
    std::deque<Visit*> starved_;  // wait for memory, in the order of arrival
    std::uint64_t visit_bytes_ = 0;
    bool admitting_ = false;  // admit() is on the stack
    std::vector<Visit*> stepped_;
    std::vector<Call*> calls_over_;
    std::vector<rma::Flush*> flushes_over_;
    std::vector<Window*> unsettled_;
    struct Released {
        Window* window = nullptr;
        std::uint32_t origin = 0;
    };
    // A lane's puts and gets, or the updates of a window, that wait.
    struct Turn {
        Window* window = nullptr;
        std::uint32_t origin = every_target;  // every_target: updates
    };
    std::deque<Turn> turns_;
    std::uint64_t round_pieces_ = 0, round_bytes_ = 0;  // of this round
    std::vector<memory::HostPiece> pieces_;             // of reach()
    std::vector<std::byte> direct_result_;
    std::vector<Released> released_;  // lanes whose visits are over while something is held back
};

}  // namespace offpath::engine
