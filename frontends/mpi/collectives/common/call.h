// The common shape of all collectives. The user's call is a value with its arguments. Three forms examine,
// prepare and start it: non-blocking, blocking (started and waited for) and persistent (started repeatedly).
//
// A call C derives from Call, has its arguments as members with `comm` as the last, and defines
//   static constexpr Op op
//   bool plausible()            false: wrong arguments, which the host's MPI must report. Sets decided_by
//                               and, for reductions, host_reason and order_matters
//   bool prepare()              examines the datatypes; false as above
//   offpath_status_t start(OffloadedRequest&)
//                               finds memory for the buffers and starts. Sets from_others. Where each pair
//                               decides, it divides the data: see pairs.h
//   void keep(Kept&)            copies what must outlive the call that makes a persistent request
//   auto host_arguments()       the arguments for the host's MPI, after keep(); Counts for its arrays
// plausible() must not depend on what other ranks do not know, except for errors.
#pragma once

#include <mpi.h>

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "communicators/counters.h"
#include "communicators/small_messages.h"
#include "counts.h"
#include "datatypes/known_types.h"
#include "requests/after_loss.h"
#include "requests/buffers.h"
#include "requests/held_calls.h"
#include "requests/offloaded_requests.h"
#include "requests/persistent_requests.h"
#include "requests/second_runs.h"
#include "rma/host_or_device.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"
#include "runtime/time_in_mpi.h"
#include "tuning/agreement.h"
#include "tuning/job_settings.h"
#include "tuning/posted_agreement.h"
#include "tuning/samples.h"

namespace offpath::mpi {

struct Call {
    Form form = Form::nonblocking;
    Team* team = nullptr;                  // set first
    offpath_team_h device_team = nullptr;  // a persistent operation's own; else the team's, when it starts
    SmallLane lane;                        // the same for messages
    std::shared_ptr<Departure> departure;  // a persistent operation's own; else null
    // Where each pair decides: bytes from which a pair goes to the device.
    std::uint64_t pairs_from = 0;
    std::uint64_t decided_by = 0;
    std::uint64_t from_others = 0;  // bytes that arrive from other ranks
    HostReason host_reason = HostReason::none;
    bool order_matters = false;  // of a reduction's operands: the two engines may differ in the last bits
    Passage passage = Passage::device;
    std::uint64_t number = 0;  // of the call, among those of its communicator that would go to the device
    bool any_large = true;     // where each pair decides: whether any pair goes to the device

    // What decides, where a few loads show it; otherwise `unknown`. A call that has it defines both
    // functions.
    static constexpr std::uint64_t unknown = KnownType::unknown;
    std::uint64_t bytes_at_a_glance() const { return unknown; }
    void remember() const {}
};

// What a persistent request keeps until it is freed: copies of arrays, datatypes, the team, and a device team
// of its own. It needs its own team because ranks may start persistent operations in different orders (MPI
// 4.0, chapter 6.13), and the operations of a device team must come in one order.
class Kept {
  public:
    // Makes what a persistent request keeps.
    explicit Kept(Team& team);
    // Makes what a call that is held back keeps. It needs no team on the device.
    struct HeldBack {};
    Kept(Team& team, HeldBack);
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    // Null: there is none.
    offpath_team_h device_team() const { return own_; }
    SmallLane lane() const { return lane_; }
    const std::shared_ptr<Departure>& departure() const { return departure_; }

    void type(MPI_Datatype& type);
    void types(const MPI_Datatype*& types, int count);
    void array(Counts& numbers, int count);

  private:
    Team& team_;
    offpath_team_h own_ = nullptr;  // null: it could not be made
    SmallLane lane_;
    std::shared_ptr<Departure> departure_;
    std::vector<std::shared_ptr<void>> owned_;
    std::vector<MPI_Datatype> types_;
};

// `count` elements of `type`, for bytes_at_a_glance().
inline std::uint64_t glance(std::int64_t count, MPI_Datatype type) {
    // Enough for all sizes that are small, and no product is too large.
    constexpr std::int64_t most = std::int64_t{1} << 30;
    const std::uint64_t each = known_bytes(type);
    if (count < 0 || count > most || each > static_cast<std::uint64_t>(most)) return Call::unknown;
    return static_cast<std::uint64_t>(count) * each;
}

// Tells the device to do `part` by `start`, and notes it for a second run. A device that is lost already
// makes no error here.
template <typename Start>
offpath_status_t tell_device(OffloadedRequest& operation, const DevicePart& part, Start start) {
    operation.part = part;
    operation.operands.clear();
    if (operation.part_only) return OFFPATH_OK;
    keep_operands(operation);
    const offpath_status_t status = start();
    if (status != OFFPATH_ERR_PEER_LOST || operation.number == 0) return status;
    lost_own_device();
    has_no_device(operation);
    operation.fresh = false;
    return OFFPATH_OK;
}
// The buffer for a second run: null in place.
inline const void* sent_from(const void* send) {
    return send == OFFPATH_IN_PLACE ? nullptr : send;
}

extern const RequestKind collective_request;

// False: use the host's MPI. The call was counted as the host's, unless the host will report an error.
bool goes_to_device(Call& call, MPI_Comm comm, Op op);

// Whether some blocking call of `op` goes to the device, because of settings or measurements.
inline bool blocking_may_pay(Op op) {
    return (blocking_may_pay_bits >> static_cast<unsigned>(op) & 1U) != 0;
}

// For a blocking collective that no rank leaves before all have entered it: counts it for the pace of
// agreements. False: there may be something to do, and nothing was counted.
inline bool passes_synchronization(MPI_Comm comm) {
    const KnownTeam& known = known_team(comm);
    if (known.comm != comm || known.epoch != team_epoch.load(std::memory_order_acquire)) return false;
    const Team& team = *known.team;
    TeamTuning* const tuning = team.tuning.get();
    if (tuning == nullptr) return true;
    return team.meetings == nullptr && !any_loss.load(std::memory_order_relaxed) &&
           tuning->choices.measures_nothing() && tuning->pace.counts_quietly();
}

// Whether a blocking call only has to call the host's MPI. This costs a few loads. False: look again.
template <Op op>
bool blocking_is_the_hosts(MPI_Comm comm) {
    if (outstanding.timed != 0 || blocking_may_pay(op) || has_letter() ||
        any_loss.load(std::memory_order_relaxed))
        return false;
    if constexpr (traits(op).synchronizes) return passes_synchronization(comm);
    return true;
}

// Whether a non-blocking call only has to call the host's MPI, because it is too small for anything else. It
// has been counted then. This costs a few loads. False: look again.
template <typename C>
bool nonblocking_is_the_hosts(const C& call) {
    const KnownTeam& known = known_team(call.comm);
    if (known.comm != call.comm || known.epoch != team_epoch.load(std::memory_order_acquire)) return false;
    const Team& team = *known.team;
    // Calls are held back only after a loss.
    if (!host_calls_are_quiet || team.reason != HostReason::none || team.tuning == nullptr ||
        any_loss.load(std::memory_order_relaxed) || has_letter())
        return false;
    const auto bytes = call.bytes_at_a_glance();
    if (!team.tuning->choices.counts_as_small(C::op, bytes)) return false;
    if (team.rank == 0) count_small(bytes);
    return true;
}

// For a blocking collective that no rank leaves before all have entered it. Sets `done` if a barrier has
// nothing left to do. An error is the call's, and was reported.
inline int at_synchronization(MPI_Comm comm, Op op, bool& done) {
    if (!active() || comm == MPI_COMM_NULL) return MPI_SUCCESS;
    Team& team = find_team(comm);
    before_collective(team);
    if (team.tuning == nullptr) return MPI_SUCCESS;
    team.tuning->posted.alone = 0;
    const bool soon = !team.tuning->posted.used && team.tuning->choices.wants_agreement_soon();
    if (team.tuning->pace.due() || soon)
        if (const int error = agree(team, comm); error != MPI_SUCCESS) return error;
    return team.meetings != nullptr ? meet_for_windows(team, comm, op == Op::ibarrier, done) : MPI_SUCCESS;
}

template <typename C>
bool accepted(C& call) {
    if (!active() || call.comm == MPI_COMM_NULL) return false;
    if (call.form == Form::blocking && !blocking_may_pay(C::op)) return false;
    call.team = &find_team(call.comm);
    if (!call.plausible()) return false;
    const bool goes = goes_to_device(call, call.comm, C::op);
    if (traits(C::op).each_pair_decides() && (goes || call.passage == Passage::undecided))
        call.pairs_from = call.team->tuning->choices.threshold(C::op, call.form);
    return goes && call.prepare();
}

template <typename C>
OffloadedRequest& acquire_operation(const C& call) {
    OffloadedRequest& operation = acquire_request(collective_request, *call.team);
    operation.op = C::op;
    if (call.departure != nullptr) {
        operation.persistent = true;
        operation.lane = call.lane;
        operation.own_departure = call.departure;
        operation.departure = call.departure.get();
    }
    return operation;
}

template <typename C>
int start_accepted(C& call, MPI_Request* request) {
    OffloadedRequest& operation = acquire_operation(call);
    operation.number = call.number;
    const bool lost = call.passage == Passage::lost;
    offpath_status_t status = lost ? OFFPATH_ERR_PEER_LOST : OFFPATH_OK;
    if (call.passage == Passage::again || call.passage == Passage::host) {
        has_no_device(operation);
        if (call.passage == Passage::host) goes_to_host(operation);
        call.lane = operation.lane;
    } else if (status == OFFPATH_OK && call.device_team == nullptr) {
        status = device_team(*call.team, &call.device_team);
        if (status == OFFPATH_ERR_PEER_LOST && call.number != 0) {
            lost_own_device();
            has_no_device(operation);
            status = OFFPATH_OK;
        }
    }
    if (status == OFFPATH_OK) status = call.start(operation);
    if (status == OFFPATH_ERR_PEER_LOST && !lost) lost_own_device();
    const int result = publish(operation, status, request);
    if (result != MPI_SUCCESS) return result;
    if (call.passage == Passage::host) {
        count_on_host(*call.team, call.team->comm, C::op, HostReason::lost, call.decided_by, call.form);
        poll();  // sends the messages: the next call may be one of the host's MPI that waits for others
    } else if (call.any_large) {
        count_offloaded(*call.team, C::op, call.from_others, call.decided_by, call.form);
    } else {
        count_on_host(*call.team, call.team->comm, C::op, HostReason::small, call.decided_by, call.form);
    }
    return result;
}

template <typename C, typename StartOnHost>
int start_on_host_with(const C& call, StartOnHost start_on_host, MPI_Request* started) {
    return std::apply([&](auto... arguments) { return start_on_host(arguments..., started); },
                      call.host_arguments());
}

template <typename C, typename StartOnHost>
int hold(C& call, MPI_Request* request, std::shared_ptr<Kept> kept, StartOnHost start_on_host) {
    return hold_back(
        acquire_operation(call), call.number,
        [call, kept, start_on_host](MPI_Request* started) {
            return start_on_host_with(call, start_on_host, started);
        },
        [call, kept](OffloadedRequest& again) {
            C prepared = call;
            prepared.lane = again.lane;
            return prepared.prepare() ? prepared.start(again) : OFFPATH_ERR_INVALID;
        },
        request);
}

template <typename C, typename OnHost, typename StartOnHost>
int nonblocking(C call, MPI_Request* request, OnHost on_host, StartOnHost start_on_host) {
    call.remember();
    if (request == nullptr) return on_host();
    if (accepted(call)) return posted(start_accepted(call, request), request);
    if (call.passage != Passage::undecided) return posted(on_host(), request);
    auto kept = std::make_shared<Kept>(*call.team, Kept::HeldBack{});
    call.keep(*kept);
    return hold(call, request, kept, start_on_host);
}

template <typename C, typename OnHost>
int blocking(C call, OnHost on_host) {
    call.form = Form::blocking;
    const presence::Inside inside;
    poll_letters();
    if constexpr (traits(C::op).synchronizes) {
        bool done = false;
        const int error = at_synchronization(call.comm, C::op, done);
        if (error != MPI_SUCCESS || (done && C::op == Op::ibarrier && !blocking_may_pay(C::op))) return error;
    }
    if (!accepted(call)) {
        if (!traits(C::op).synchronizes) before_collective(call.comm);
        return on_host();
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int result = start_accepted(call, &request);
    return result == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : result;
}

// The path is chosen once. The first start builds the schedule and the others replay it. Once the request has
// left a lost device, a start sends messages of the host's MPI (second_runs.h): ranks may start persistent
// collectives in different orders, so a start cannot be a collective of the host's.
template <typename C, typename OnHost, typename StartOnHost>
int persistent(C call, MPI_Request* request, OnHost on_host, StartOnHost start_on_host) {
    call.form = Form::persistent;
    if (request == nullptr || !accepted(call)) return on_host();
    auto kept = std::make_shared<Kept>(*call.team);
    call.keep(*kept);
    if (!call.prepare()) return on_host();
    call.device_team = kept->device_team();
    call.lane = kept->lane();
    call.departure = kept->departure();
    if (!call.lane.usable()) call.pairs_from = 0;
    return make_persistent(
        [call, kept, start_on_host](MPI_Request* started) {
            C again = call;
            again.passage = pass_persistent(*call.team, *call.departure, C::op, &again.number);
            return again.passage == Passage::undecided ? hold(again, started, kept, start_on_host)
                                                       : start_accepted(again, started);
        },
        request);
}

}  // namespace offpath::mpi

// Defines the calls of one collective: COLLECTIVE(Alltoall, Alltoall, alltoall, (parameters), (arguments)).
// Each list ends before the communicator; parameters have the types Count and Displacement. Persistent calls,
// and those with large counts, get the names that this MPI gives them, if it has them.
#define OFFPATH_UNPACK(...) __VA_ARGS__
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define OFFPATH_PERSISTENT(Call, Name, name, parameters, arguments) \
    OFFPATH_PERSISTENT_AS(Call, MPI_##Name##_init, PMPI_##Name##_init, PMPI_I##name, parameters, arguments)
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define OFFPATH_PERSISTENT(Call, Name, name, parameters, arguments) \
    OFFPATH_PERSISTENT_AS(Call, MPIX_##Name##_init, PMPIX_##Name##_init, PMPI_I##name, parameters, arguments)
#else
#define OFFPATH_PERSISTENT(Call, Name, name, parameters, arguments)
#endif
#if MPI_VERSION >= 4
#define OFFPATH_LARGE(Call, Name, name, parameters, arguments)                                           \
    namespace offpath::mpi::large_counts {                                                               \
    OFFPATH_FORMS(Call, Name##_c, name##_c, parameters, arguments)                                       \
    OFFPATH_PERSISTENT_AS(Call, MPI_##Name##_init_c, PMPI_##Name##_init_c, PMPI_I##name##_c, parameters, \
                          arguments)                                                                     \
    }
#else
#define OFFPATH_LARGE(Call, Name, name, parameters, arguments)
#endif
// Weak: another build of the same MPI may lack the extension.
#define OFFPATH_PRAGMA(text) _Pragma(#text)
#define OFFPATH_PERSISTENT_AS(Call, name, host, start_on_host, parameters, arguments)                 \
    OFFPATH_PRAGMA(weak host)                                                                         \
    extern "C" OFFPATH_API int name(OFFPATH_UNPACK parameters, MPI_Info info, MPI_Request* request) { \
        return offpath::mpi::persistent(                                                              \
            Call{{}, OFFPATH_UNPACK arguments}, request,                                              \
            [&] { return host(OFFPATH_UNPACK arguments, info, request); },                            \
            [](auto... all) { return start_on_host(all...); });                                       \
    }
// The code for calls that may involve the device is out of line: the host's call then needs no stack
// frame of ours.
#define OFFPATH_FORMS(Call, Name, name, parameters, arguments)                                       \
    [[gnu::noinline]] static int look_and_I##name(OFFPATH_UNPACK parameters, MPI_Request* request) { \
        return offpath::mpi::nonblocking(                                                            \
            Call{{}, OFFPATH_UNPACK arguments}, request,                                             \
            [&] { return PMPI_I##name(OFFPATH_UNPACK arguments, request); },                         \
            [](auto... all) { return PMPI_I##name(all...); });                                       \
    }                                                                                                \
    extern "C" OFFPATH_API int MPI_I##name(OFFPATH_UNPACK parameters, MPI_Request* request) {        \
        return offpath::mpi::nonblocking_is_the_hosts(Call{{}, OFFPATH_UNPACK arguments})            \
                   ? PMPI_I##name(OFFPATH_UNPACK arguments, request)                                 \
                   : look_and_I##name(OFFPATH_UNPACK arguments, request);                            \
    }                                                                                                \
    [[gnu::noinline]] static int look_and_##Name(OFFPATH_UNPACK parameters) {                        \
        return offpath::mpi::blocking(Call{{}, OFFPATH_UNPACK arguments},                            \
                                      [&] { return PMPI_##Name(OFFPATH_UNPACK arguments); });        \
    }                                                                                                \
    extern "C" OFFPATH_API int MPI_##Name(OFFPATH_UNPACK parameters) {                               \
        return offpath::mpi::blocking_is_the_hosts<Call::op>(comm)                                   \
                   ? PMPI_##Name(OFFPATH_UNPACK arguments)                                           \
                   : look_and_##Name(OFFPATH_UNPACK arguments);                                      \
    }
// For a collective without counts.
#define COLLECTIVE_OF_NOTHING(Call, Name, name, parameters, arguments) \
    OFFPATH_FORMS(Call, Name, name, parameters, arguments)             \
    OFFPATH_PERSISTENT(Call, Name, name, parameters, arguments)
#define COLLECTIVE(Call, Name, name, parameters, arguments)        \
    namespace offpath::mpi::int_counts {                           \
    COLLECTIVE_OF_NOTHING(Call, Name, name, parameters, arguments) \
    }                                                              \
    OFFPATH_LARGE(Call, Name, name, parameters, arguments)
