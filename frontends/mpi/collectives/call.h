// The one shape of all collectives. What the user called is a value that knows its arguments; it is looked
// at, prepared and started, and three forms do that: non-blocking, blocking (started and waited for),
// persistent (started again and again).
//
// A call C derives from Call, has its arguments as members with `comm` as the last, and says
//   static constexpr Op op
//   static constexpr bool each_pair_decides   no rank knows all sizes; start() divides, see pairs.h
//   bool plausible()            false: wrong arguments, which the host's MPI is to report. Sets decided_by
//                               and, for reductions, host_reason and order_matters
//   bool prepare()              looks at the datatypes; false as above
//   offpath_status_t start(Operation&)        finds places for the buffers and starts. Sets from_others.
//   void keep(Kept&)            has copied what has to outlive the call that makes a persistent request
//   auto host_arguments()       what the host's MPI is passed, after keep(); Counts for its arrays
// plausible() must not depend on what other ranks do not know, except for what is an error anyway.
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

#include "../buffers.h"
#include "../counters.h"
#include "../operations.h"
#include "../persistent.h"
#include "../rma/presence.h"
#include "../runtime.h"
#include "../tuning/agreement.h"
#include "../tuning/samples.h"
#include "counts.h"
#include "small_messages.h"

namespace offpath::mpi {

struct Call {
    Form form = Form::nonblocking;
    Team* team = nullptr;                  // set first; its handle may be null
    offpath_team_h device_team = nullptr;  // the team's, or a persistent operation's own
    SmallLane lane;                        // likewise for messages of small pairs
    std::uint64_t pairs_from = 0;          // bytes from which a pair goes to the device, where each decides
    std::uint64_t decided_by = 0;
    std::uint64_t from_others = 0;  // bytes that arrive from other ranks
    HostReason host_reason = HostReason::none;
    bool order_matters = false;  // of a reduction's operands: the two engines may differ in the last bits
    bool any_large = true;       // where each pair decides: whether one goes to the device
};

// What a persistent request keeps until it is freed: copies of arrays, datatypes, the team, and a team of its
// own on the device. Ranks may start persistent operations in different orders (MPI 4.0, chapter 6.13), and
// the operations of a team must come in one order.
class Kept {
  public:
    Kept(Team& team, MPI_Comm comm);
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    offpath_team_h device_team() const { return own_ != nullptr ? own_ : team_.handle; }
    SmallLane lane() const { return lane_; }

    void type(MPI_Datatype& type);
    void types(const MPI_Datatype*& types, int count);
    void array(Counts& numbers, int count);

  private:
    Team& team_;
    offpath_team_h own_ = nullptr;  // null: it could not be made
    SmallLane lane_;
    std::vector<std::shared_ptr<void>> owned_;
    std::vector<MPI_Datatype> types_;
};

// False: the host's MPI, which was counted unless it is to report an error.
bool goes_to_device(Call& call, MPI_Comm comm, Op op, bool each_pair_decides);

// Whether some blocking call of `op` goes to the device: asked for, or measured.
inline bool blocking_may_pay(Op op) {
    const Runtime& r = runtime();
    return r.settings.selection.enabled(op, Form::blocking) || !r.table.empty();
}

template <typename C>
bool accepted(C& call) {
    if (!active() || call.comm == MPI_COMM_NULL) return false;
    if (call.form == Form::blocking && !blocking_may_pay(C::op)) return false;
    call.team = &find_team(call.comm);
    call.device_team = call.team->handle;
    if (!call.plausible() || !goes_to_device(call, call.comm, C::op, C::each_pair_decides)) return false;
    if (C::each_pair_decides) call.pairs_from = call.team->tuning->choices.threshold(C::op, call.form);
    return call.prepare();
}

template <typename C>
int start_accepted(C& call, MPI_Request* request) {
    Operation& operation = acquire_operation(C::op, *call.team);
    const int result = publish(operation, call.start(operation), request);
    if (result != MPI_SUCCESS) return result;
    if (call.any_large) {
        count_offloaded(*call.team, C::op, call.from_others, call.decided_by, call.form);
    } else {
        count_on_host(*call.team, call.team->comm, C::op, HostReason::small, call.decided_by, call.form);
    }
    return result;
}

template <typename C, typename OnHost>
int nonblocking(C call, MPI_Request* request, OnHost on_host) {
    const int result = request != nullptr && accepted(call) ? start_accepted(call, request) : on_host();
    return posted(result, request);
}

template <typename C, typename OnHost>
int blocking(C call, OnHost on_host) {
    call.form = Form::blocking;
    const presence::Inside inside;
    if (synchronizes(C::op) && at_synchronization(call.comm, C::op) && C::op == Op::ibarrier &&
        !blocking_may_pay(C::op))
        return MPI_SUCCESS;
    if (!accepted(call)) return on_host();
    MPI_Request request = MPI_REQUEST_NULL;
    const int result = start_accepted(call, &request);
    return result == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : result;
}

// Where it goes is decided once. The schedule is built by the first start and replayed by the others. Once
// the communicator has left the device, a start is a non-blocking call of the host's MPI: `start_on_host`
// with the call's arguments.
template <typename C, typename OnHost, typename StartOnHost>
int persistent(C call, MPI_Request* request, OnHost on_host, StartOnHost start_on_host) {
    call.form = Form::persistent;
    if (request == nullptr || !accepted(call)) return on_host();
    auto kept = std::make_shared<Kept>(*call.team, call.comm);
    call.keep(*kept);
    if (!call.prepare()) return on_host();
    call.device_team = kept->device_team();
    call.lane = kept->lane();
    if (!call.lane.usable()) call.pairs_from = 0;
    return make_persistent(
        [call, kept, start_on_host](MPI_Request* started) {
            if (!stays_on_device(*call.team, true) && call.team->comm != MPI_COMM_NULL) {
                count_on_host(*call.team, call.team->comm, C::op, HostReason::no_team, call.decided_by,
                              call.form);
                return std::apply([&](auto... arguments) { return start_on_host(arguments..., started); },
                                  call.host_arguments());
            }
            C again = call;
            return start_accepted(again, started);
        },
        request);
}

}  // namespace offpath::mpi

// Defines the calls of one collective: COLLECTIVE(Alltoall, Alltoall, alltoall, (parameters), (arguments)),
// each list up to the communicator, with parameters of type Count and Displacement. Those with large counts
// and persistent ones have the names that the MPI at hand gives them, if it has them.
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
#define OFFPATH_FORMS(Call, Name, name, parameters, arguments)                                             \
    extern "C" OFFPATH_API int MPI_I##name(OFFPATH_UNPACK parameters, MPI_Request* request) {              \
        return offpath::mpi::nonblocking(Call{{}, OFFPATH_UNPACK arguments}, request,                      \
                                         [&] { return PMPI_I##name(OFFPATH_UNPACK arguments, request); }); \
    }                                                                                                      \
    extern "C" OFFPATH_API int MPI_##Name(OFFPATH_UNPACK parameters) {                                     \
        return offpath::mpi::blocking(Call{{}, OFFPATH_UNPACK arguments},                                  \
                                      [&] { return PMPI_##Name(OFFPATH_UNPACK arguments); });              \
    }
// Of a collective without counts.
#define COLLECTIVE_OF_NOTHING(Call, Name, name, parameters, arguments) \
    OFFPATH_FORMS(Call, Name, name, parameters, arguments)             \
    OFFPATH_PERSISTENT(Call, Name, name, parameters, arguments)
#define COLLECTIVE(Call, Name, name, parameters, arguments)        \
    namespace offpath::mpi::int_counts {                           \
    COLLECTIVE_OF_NOTHING(Call, Name, name, parameters, arguments) \
    }                                                              \
    OFFPATH_LARGE(Call, Name, name, parameters, arguments)
