// A window as one rank's engine knows it: the operations that its rank has started on others, and those of
// others on its memory. The slabs of OneSided own calls, parts and visits; a window owns its lanes and
// queues.
#pragma once

#include "base/linked_list.h"
#include "engine/onesided/calls.h"
#include "engine/onesided/headers.h"
#include "engine/onesided/remote_ledger.h"
#include "engine/teams/team.h"
#include "matching/matcher.h"
#include "rma/epochs.h"
#include "rma/ledger.h"
#include "rma/locks.h"
#include "rma/parts.h"
#include "rma/ranges.h"

#include <deque>
#include <optional>
#include <vector>

namespace offpath::engine {

struct StartedCall;
struct Visit;

class OneSided;
struct MessagePart;

// A message of an origin, until its turn comes.
struct OneSidedRequest {
    OneSidedHeader header{};
    std::span<const std::byte> payload;  // segments, then operands
    std::vector<std::byte> own;          // the payload, if it must outlive its message
    bool counted = false;                // counted as an early message (Config::early_bytes)

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
        std::uint32_t parts = 0;         // outstanding
        std::uint64_t pieces = 0;        // of the outstanding parts
        std::uint64_t owner_memory = 0;  // memory that the outstanding parts take at the owner
        std::deque<StartedCall*> queue;
        rma::Epochs epochs;
    };
    std::vector<Target> targets;
    LinkedList<StartedCall> calls;

    // The owner's half, by origin.
    struct Lane {
        matching::OrderGate<OneSidedRequest> gate;
        std::deque<Visit*> updates;
        bool due = false;
        std::deque<Visit*> in_turns;       // puts and gets that wait for their turn
        std::uint32_t visits = 0;          // begun and not over
        std::deque<OneSidedRequest> held;  // the first is ordered; all wait until the visits are over
    };
    std::vector<Lane> lanes;
    std::deque<std::uint32_t> due;  // origins whose first update may run
    bool updating = false;          // an update is in progress in memory that answers later
    bool running_updates = false;   // run_updates() is on the stack
    bool updates_in_turns = false;  // the updates wait for their turn
    rma::LockQueue lock;
    LinkedList<Visit> visits;
    std::size_t held = 0;  // in all lanes
    rma::Ledger ledger;
    std::optional<RemoteLedger> remote_ledger;  // instead of `ledger`
    bool retired = false;           // it has one of them, and a rank of its team is gone: it accepts nothing
    std::uint64_t early_bytes = 0;  // what the lanes keep, as part of the job's early bytes

    Session& session() const { return *team->session; }
    bool keeps_ledger() const { return !ledger.empty() || remote_ledger; }
    bool idle() const {
        return calls.empty() && visits.empty() && held == 0 &&
               (!remote_ledger || remote_ledger->outstanding() == 0);
    }
};

struct StartedCall : Linked<StartedCall> {
    std::uint64_t token = 0;
    Window* window = nullptr;
    OneSidedCall asked;  // `ordered` applies to its next message; the segments are in `rest`
    rma::Parts rest;
    std::uint64_t epoch = 0;
    bool lock_sent = false;  // the only message of a lock
    bool over = false;
    LinkedList<MessagePart> parts;
    Status status = Status::ok;
    Completion* done = nullptr;
    void reset() { *this = StartedCall{}; }
};

// A message of a call, until it is answered.
struct MessagePart final : TransferPair, Linked<MessagePart> {
    std::uint64_t token = 0;
    OneSided* home = nullptr;
    StartedCall* call = nullptr;
    std::uint64_t pieces = 0;
    std::uint64_t owner_memory = 0;
    bool answered = false, over = false;

    void moved(Status status) override;
    void reset() { *this = MessagePart{}; }
};

// A part, as the owner executes it: an access to `segments`.
struct Visit final : rma::Access, Completion, TransferPair, Linked<Visit> {
    std::uint64_t token = 0;
    OneSided* home = nullptr;
    Window* window = nullptr;
    std::uint32_t origin = 0;
    std::uint64_t part = 0, sender = 0, receiver = 0;
    std::uint64_t memory = 0;  // of this engine, for operands and result
    std::vector<rma::Segment> segments;
    std::vector<memory::HostRange> places;    // of the segments
    std::vector<rma::Ranges::Range*> ranges;  // the ranges that contain them, each held
    std::vector<std::byte> operands, fetched, updated;
    // noting: the ledger's word must be there before the update is written.
    enum class Stage : std::uint8_t { arriving, reading, noting, writing, returning, over };
    Stage stage = Stage::arriving;
    bool in_lane = false, has_arrived = false, updates = false, admitted = false;
    bool listed = false, returned_apart = false, in_turns = false;
    bool in_ledger = false;      // an update that the ledger calls begun, and not applied
    bool noted = false;          // the same before its first byte is written
    bool unreached = false;      // an access to memory has failed
    std::uint32_t accesses = 0;  // outstanding accesses to memory that answers later
    Status status = Status::ok;

    void moved(Status moved_with) override;
    // Whether it costs no more than its message.
    bool small() const { return segments.size() == 1 && bytes <= rma::inline_bytes; }
    void reset() { *this = Visit{}; }
};

struct WindowsOfTeam final : TeamPart {
    std::size_t windows = 0;

    bool idle() const override { return windows == 0; }
    static WindowsOfTeam& of(const Team& team) {
        return static_cast<WindowsOfTeam&>(*team.parts[static_cast<std::size_t>(TenantId::one_sided)]);
    }
};

}  // namespace offpath::engine
