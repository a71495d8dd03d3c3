// OneSided: the tenant for puts, gets, updates and locks on windows.
//
// At the origin, a StartedCall is the request, cut into parts of one message each. The parts of the calls to
// one target go out in order, a bounded number at a time. The owner is the engine that serves the target. It
// puts the messages of one origin back in order, and each becomes a Visit, which moves bytes between the
// origin's engine and the window's memory. Every part is answered once it is done at the target, so a flush
// is a count (rma/epochs.h).
//
// Updates wait in their origin's lane until their operands have arrived. One update at a time touches the
// memory of a window.
//
// Memory: visits get memory in the order of arrival, up to Config::visit_bytes in total. A visit that has
// memory never waits for one that has none, because its lane arrived first.
//
// Order: an ordered message, and those behind it, are held back until the earlier visits of its lane are
// over. A held message has no memory and no place in another queue, so nothing waits for it. Messages that
// arrive out of order or are held back count as early messages of their job (Config::early_bytes).
//
// Turns: after a bounded amount of work on windows in a round, visits of several pieces or of many bytes wait
// for the next round. Each lane, and the updates of each window, have their own queue. A visit is always
// executed whole, so updates remain atomic to each other (turns.cpp).
//
// Bundles: messages to one proxy in a round travel together, up to bundle_bytes (bundle.cpp). Sequence
// numbers belong to the messages, not to the bundle.
//
// Short cuts: a small put or get of memory that has a pointer needs no visit; it is executed when its turn
// comes. An operation of a host rank on the direct path (rma/direct.h) is executed at once if the memory has
// a pointer and no update of it is in progress, and refused otherwise. The rank itself must order it with its
// visits.
//
// Ownership: the slabs own calls, parts and visits; a window owns its lanes and queues. Threads: the
// engine's. The mover's transfers carry the payload. Work that ends inside a call of theirs is put into a
// list and handled in advance().
#pragma once

#include "engine/onesided/window.h"
#include "engine/teams/tenant.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace offpath::engine {

// target <- target (reduction) operands, for `bytes` of whole elements; `access` says how. Implemented in
// update.cpp.
Status apply_update(const rma::Access& access, const std::byte* operands, std::byte* target,
                    std::size_t bytes);

class OneSided final : public Tenant {
  public:
    explicit OneSided(Core& core)
        : Tenant(core),
          calls_(core.random),
          parts_(core.random),
          visits_(core.random),
          flushes_(core.random),
          parcels_(core.random) {}

    // Tenant
    std::unique_ptr<TeamPart> join(Team& team) override;
    bool on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                    Peer& from) override;
    void cancel(Session& session, Status reason) override;
    void ranks_gone(Team& team, const RanksGone& gone) override;
    std::size_t outstanding(const Session& session) const override;
    void mark_awaited(const Session& session) const override;
    bool advance() override;
    bool finish() override { return send_bundles(); }
    bool has_work() const override {
        return !local_.empty() || !stepped_.empty() || !calls_over_.empty() || !flushes_over_.empty() ||
               !unsettled_.empty() || !released_.empty() || !gathered_.empty() || !turns_.empty();
    }
    void trim() override;

    // window.cpp
    Status create(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                  Window** window);
    Status attach(Window& window, const memory::HostRange& memory, std::uint64_t begin);
    Status detach(Window& window, std::uint64_t begin, Completion* done);
    Status destroy(Window& window, Completion* done);
    Status keep_ledger(Window& window, const memory::HostRange& memory);
    // The session has ended.
    void forget(Session& session);

    // origin.cpp
    Status start(Window& window, OneSidedCall call, Completion* done);
    void failed(Window& window, std::uint32_t target, Status status);
    Status flush(Window& window, std::uint32_t target, Completion* done);
    void end_part(MessagePart& part, Status status);

    // owner.cpp
    void visit_moved(Visit& visit, Status status);

    // direct.cpp
    Status at_once(const DirectAccess& call, std::span<const std::byte>& result);

    // bundle.cpp
    // Takes an answer or a bundle. False: it is malformed. Its payload is consumed or discarded either way.
    bool take(std::span<const std::byte> header, const transport::Incoming& incoming, Peer& from);
    // The peer ends: nothing that is still arriving from it counts any more.
    void forget(const Peer& peer);
    // Sends the gathered messages at the end of a round. Returns whether there were any.
    bool send_bundles();

    // turns.cpp
    // Starts a round, with a new allowance of work on windows. Returns whether anything was done.
    bool begin_round();
    // Whether the round's allowance is used up.
    bool spent() const;

  private:
    // window.cpp
    void settle(Window& window);
    void drop(const Window& window);
    void end_visits(const Window& window, const std::function<bool(const Visit&)>& of, Status status);
    void give_up_locks(Window& window);
    void retire(Window& window);
    void close_if_retired(Window& window);
    void ledger_settled(Window& window);
    Window* find(const Route& route, std::uint64_t id, bool as_dest);

    // origin.cpp
    void pump(Window& window, std::uint32_t target);
    void send_part(StartedCall& call);
    void on_answer(const OneSidedAnswer& answer, std::span<const std::byte> payload, Peer& from);
    void end_call(StartedCall& call);
    void fail_call(StartedCall& call, Status status);
    struct FlushOf : rma::Flush {
        std::uint64_t token = 0;
        Completion* done = nullptr;
        void reset() { *this = FlushOf{}; }
    };

    // bundle.cpp
    struct Bundle {
        Peer* peer = nullptr;
        std::uint32_t messages = 0;
        std::vector<std::byte> bytes;
    };
    // A bundle that the transport is reading or delivering.
    struct Parcel : Completion {
        std::uint64_t token = 0;
        OneSided* home = nullptr;
        Peer* from = nullptr;  // its sender; null: outgoing, or no longer wanted
        OneSidedBundle header{};
        std::vector<std::byte> bytes;
        void reset() { *this = Parcel{}; }
    };
    // The payload of tell() may come in two pieces.
    void take_bundle(std::span<const std::byte> header, const transport::Incoming& incoming, Peer& from);
    void tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload,
              std::span<const std::byte> more = {});
    void send(Bundle& bundle);
    void send_large(Bundle& bundle);
    Parcel& new_parcel(std::vector<std::byte> bytes);
    void parcel_over(Parcel& parcel, Status status);
    void dispatch_bundle(OneSidedBundle bundle, std::span<const std::byte> payload, Peer& from);
    std::vector<std::byte> spare_buffer();

    // owner.cpp
    void answer(Peer& peer, std::uint64_t part, Status status, std::span<const std::byte> payload = {});
    void dispatch(std::span<const std::byte> header, std::span<const std::byte> payload, Peer& from);
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

    // direct.cpp
    Status update(const DirectAccess& call, std::byte* place, std::span<const std::byte>& result);
    Status across_ranges(Window& window, const DirectAccess& call, std::span<const std::byte>& result);
    Status lock_at_once(Window& window, const DirectAccess& call);

    // turns.cpp
    bool may_begin(const Visit& visit) const;
    void touch(Visit& visit);
    void wait_for_turn(Window& window);
    void leave_turns(Visit& visit);
    void account(const Visit& visit);

    // update.cpp
    void step(Visit& visit);
    void arrived(Visit& visit);
    void begin_access(Visit& visit);
    Visit* next_update(Window& window);
    // `its_turn`: an update that is not small may run although others wait.
    void run_updates(Window& window, bool its_turn = false);
    bool reach(Visit& visit, std::byte* bytes, bool writes);
    void look_at_lane(Window& window, std::uint32_t origin);
    bool update_in_place(Visit& visit);
    bool note_begin(Visit& visit);
    void note_end(Visit& visit);
    void return_fetched(Visit& visit);

    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t>,
             std::unique_ptr<Window>>
        windows_;  // by job, team, rank and id
    Slab<StartedCall> calls_;
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
    std::deque<Visit*> starved_;  // waiting for memory, in the order of arrival
    std::uint64_t visit_bytes_ = 0;
    bool admitting_ = false;  // admit() is on the stack
    std::vector<Visit*> stepped_;
    std::vector<StartedCall*> calls_over_;
    std::vector<rma::Flush*> flushes_over_;
    std::vector<Window*> unsettled_;
    struct Released {
        Window* window = nullptr;
        std::uint32_t origin = 0;
    };
    // The waiting puts and gets of a lane, or the waiting updates of a window.
    struct Turn {
        Window* window = nullptr;
        std::uint32_t origin = every_target;  // every_target: updates
    };
    std::deque<Turn> turns_;
    std::uint64_t round_pieces_ = 0, round_bytes_ = 0;  // of this round
    std::vector<memory::HostPiece> pieces_;             // of reach()
    std::vector<std::byte> direct_result_;
    std::vector<Released> released_;  // lanes with no visits left but with messages held back
};

}  // namespace offpath::engine
