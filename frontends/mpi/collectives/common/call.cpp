#include "call.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/losses.h"
#include "tuning/explain.h"

namespace offpath::mpi {
namespace {

std::string name_of_collective(const OffloadedRequest& request) {
    return call_name(request.op);
}

// "rank 3 has", "ranks 3, 5 have", of the world.
std::string ranks(const std::vector<int>& of_world, const char* one, const char* several) {
    constexpr std::size_t most = 8;
    std::string text = of_world.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < std::min(most, of_world.size()); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", of_world[i]);
    if (of_world.size() > most) text += fmt::format(" and {} others", of_world.size() - most);
    return text + " " + (of_world.size() == 1 ? one : several);
}

std::string why_not_again(const OffloadedRequest& request) {
    if (device_may_write(request)) return "its device may still write into its buffers";
    if (!has_operands(request)) return "it has overwritten operands in place";
    const Departure::Refusals refusals = request.departure->refusals_of(request.number, repair_of(request));
    if (!refusals.not_intact.empty())
        return fmt::format("{} its result, or cannot run it again",
                           ranks(refusals.not_intact, "has", "have"));
    if (!refusals.silent.empty())
        return fmt::format("{} not answered in time", ranks(refusals.silent, "has", "have"));
    if (!refusals.gave_up.empty())
        return fmt::format("{} waited for another one in vain", ranks(refusals.gave_up, "has", "have"));
    return "another rank has its result, has not answered in time, or cannot run it again";
}

// Says what failed and calls the communicator's error handler, which by default ends the job. Returns the
// error.
int fail_collective(const OffloadedRequest& request, offpath_status_t status) {
    lost_on_team(*request.team, status);
    if (status == OFFPATH_ERR_PEER_LOST) {
        request.departure->report();
        // A message of a second run may be on the way here.
        request.team->small_messages.never_reuse_tag();
    }
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    const MPI_Comm comm = request.team->comm;
    if (comm != MPI_COMM_NULL) PMPI_Comm_get_name(comm, name, &length);
    const bool lost = status == OFFPATH_ERR_PEER_LOST && request.number != 0;
    warn(Code::operation,
         fmt::format("rank {}: {} on {} ({} ranks) failed: {}{}", runtime().rank, name_of_collective(request),
                     length > 0 ? name : "an unnamed communicator", request.team->size,
                     offpath_status_string(status),
                     lost ? fmt::format("; it cannot be run again: {}", why_not_again(request)) : ""));
    PMPI_Comm_call_errhandler(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

}  // namespace

constinit const RequestKind collective_request{name_of_collective, fail_collective};

Kept::Kept(Team& team) : team_(team) {
    retain(team);
    team.users.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t number = team.persistent_made.fetch_add(1, std::memory_order_relaxed);
    own_ = make_team_beside(team, number);
    lane_ = SmallLane::of_persistent(number);
    departure_ = std::make_shared<Departure>(*team.departure, static_cast<std::uint32_t>(number + 1));
}

Kept::Kept(Team& team, HeldBack) : team_(team) {
    retain(team);
    team.users.fetch_add(1, std::memory_order_relaxed);
}

Kept::~Kept() {
    for (MPI_Datatype& type : types_)
        free_type(&type);
    if (departure_ != nullptr) departure_->close(true);
    if (own_ != nullptr && active()) offpath_team_destroy(own_);
    end_use(team_);
    release(team_);
}

void Kept::type(MPI_Datatype& type) {
    if (type == MPI_DATATYPE_NULL) return;
    const MPI_Datatype held = hold_type(type);
    if (held == MPI_DATATYPE_NULL) return;
    types_.push_back(held);
    type = held;
}

void Kept::array(Counts& numbers, int count) {
    if (numbers == nullptr) return;
    numbers = numbers.copy(count, owned_);
}

void Kept::types(const MPI_Datatype*& types, int count) {
    if (types == nullptr) return;
    auto copy = std::make_shared<std::vector<MPI_Datatype>>(types, types + count);
    for (MPI_Datatype& each : *copy)
        type(each);
    types = copy->data();
    owned_.push_back(std::move(copy));
}

namespace {

// Decides where a call goes after a loss. `reason` says why the call is the host's, if it is.
void find_passage(Call& call, Op op, HostReason* reason) {
    Team& team = *call.team;
    const bool blocking = call.form == Form::blocking;
    if (*reason == HostReason::none) {
        call.passage = blocking ? pass_settled(team, op, &call.number) : pass(team, op, &call.number);
        if (call.passage == Passage::host) *reason = HostReason::lost;
    } else if (!blocking && must_hold(team)) {
        call.passage = Passage::undecided;
    }
}

}  // namespace

bool goes_to_device(Call& call, MPI_Comm comm, Op op) {
    HostReason reason = call.team->reason;
    if (call.team->tuning != nullptr) {
        // Ask in any case, because all ranks must count the calls of a communicator alike.
        Choices& choices = call.team->tuning->choices;
        if (traits(op).synchronizes && call.form == Form::nonblocking && call.team->served() &&
            !choices.measures_nothing())
            agree_meanwhile(*call.team);
        const bool by_bytes = traits(op).has_data() && !traits(op).each_pair_decides();
        const Engines engines =
            call.order_matters && tuning_settings.refine_sums == 0 ? Engines::same : Engines::any;
        const Choice choice = by_bytes ? choices.next(op, call.form, call.decided_by, engines)
                                       : choices.next_by_parts(op, call.form);
        // A call that the others may have started on the device counts as one.
        const bool unknown = choice.sampled != nullptr && call.team->tuning->posted.unknown;
        if (reason == HostReason::none)
            reason = choice.reason != HostReason::none && !unknown ? choice.reason : call.host_reason;
        // Making a persistent request does not count as a call.
        if (call.form != Form::persistent) find_passage(call, op, &reason);
        if (choice.sampled != nullptr && call.host_reason == HostReason::none &&
            call.team->reason == HostReason::none && call.passage == Passage::device) {
            begin_sample(*call.team, *choice.sampled, choice.call);
        }
        if (by_bytes) explain_choice(*call.team, op, call.form, call.decided_by, choice);
    } else if (!runtime().settings.selection.enabled(op, call.form)) {
        reason = HostReason::switched_off;
    }
    if (call.passage == Passage::undecided) return false;
    if (reason == HostReason::none) return true;
    // A blocking call for which offloading was not requested goes to the host without being counted.
    if (call.form == Form::blocking && !runtime().settings.selection.enabled(op, call.form)) return false;
    count_on_host(*call.team, comm, op, reason, call.decided_by, call.form);
    return false;
}

}  // namespace offpath::mpi
