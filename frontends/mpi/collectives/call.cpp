#include "call.h"

#include "../tuning/explain.h"

namespace offpath::mpi {

Kept::Kept(Team& team, MPI_Comm comm) : team_(team) {
    retain(team);
    team.users.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t number = team.persistent_made.fetch_add(1, std::memory_order_relaxed);
    own_ = make_team_beside(team, comm, number);
    lane_ = SmallLane::of_persistent(number);
}

Kept::~Kept() {
    for (MPI_Datatype& type : types_)
        free_type(&type);
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

bool goes_to_device(Call& call, MPI_Comm comm, Op op, bool each_pair_decides) {
    HostReason reason = call.team->reason;
    if (call.team->tuning != nullptr) {
        // Asked whatever comes of it: the calls of a communicator are counted alike on all its ranks.
        Choices& choices = call.team->tuning->choices;
        const bool by_bytes = !each_pair_decides && op != Op::ibarrier;
        const Engines engines =
            call.order_matters && runtime().settings.refine_sums == 0 ? Engines::same : Engines::any;
        const Choice choice = by_bytes ? choices.next(op, call.form, call.decided_by, engines)
                                       : choices.next_by_parts(op, call.form);
        if (reason == HostReason::none)
            reason = choice.reason != HostReason::none ? choice.reason : call.host_reason;
        // A persistent call is none yet.
        if (reason == HostReason::none && call.form != Form::persistent && !stays_on_device(*call.team))
            reason = call.team->reason;
        if (choice.sampled != nullptr && call.host_reason == HostReason::none &&
            call.team->reason == HostReason::none) {
            begin_sample(*call.team, *choice.sampled, choice.call);
        }
        if (by_bytes) explain_choice(*call.team, op, call.form, call.decided_by, choice);
    } else if (!runtime().settings.selection.enabled(op, call.form)) {
        reason = HostReason::switched_off;
    }
    if (reason == HostReason::none) return true;
    // A blocking call that nobody asked to offload is the host's as ever.
    if (call.form == Form::blocking && !runtime().settings.selection.enabled(op, call.form)) return false;
    count_on_host(*call.team, comm, op, reason, call.decided_by, call.form);
    return false;
}

}  // namespace offpath::mpi
