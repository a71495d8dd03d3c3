#include "agreement.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "agreed.h"
#include "base/clock.h"
#include "communicators/agreeing.h"
#include "job_settings.h"
#include "runtime/backoff.h"
#include "runtime/runtime.h"
#include "signature_file.h"

namespace offpath::mpi {
namespace {

// Agreements of communicators that the program has freed on this rank. Other ranks make their steps when they
// free theirs. The team lives as long, and with it the tags of its messages.
struct Dropped {
    std::unique_ptr<Agreement> agreement;
    Team* team;
};
std::mutex dropped_mutex;
std::atomic<bool> any_lost{false};
std::vector<Dropped> dropped;

// Returns whether some are left.
bool advance_dropped() {
    const std::lock_guard lock(dropped_mutex);
    std::erase_if(dropped, [](Dropped& one) {
        Agreement& agreement = *one.agreement;
        const bool ended =
            agreement.under_way != nullptr ? agreement.under_way->advance() : agreement.sums.advance();
        if (!ended) return false;
        one.agreement.reset();
        release(*one.team);
        return true;
    });
    return !dropped.empty();
}

TeamShape team_shape_of(const std::vector<int>& members) {
    std::set<int> nodes;
    for (const int rank : members)
        nodes.insert(runtime().node_of[static_cast<std::size_t>(rank)]);
    return {static_cast<std::uint32_t>(members.size()), static_cast<std::uint32_t>(nodes.size())};
}

}  // namespace

TeamTuning::TeamTuning(const Table& table, TeamShape shape, std::uint64_t team_id)
    : choices(runtime().settings.selection, table, shape, tuning_settings.first_trial_after,
              remembered_rows()),
      id(team_id),
      agreed_ns(now_ns()) {
    posted.agreed_ns = agreed_ns;
}

TeamTuning::~TeamTuning() = default;

int agree(Team& team, MPI_Comm comm) {
    TeamTuning& tuning = *team.tuning;
    if (tuning.lost != MPI_SUCCESS) {
        PMPI_Comm_call_errhandler(comm, tuning.lost);
        return tuning.lost;
    }
    advance_dropped();
    const bool begins = tuning.agreement == nullptr;
    const bool waits = begins && !(tuning.choices.measures_nothing() && tuning_settings.agree_ms > 0);
    if (begins) tuning.agreement = std::make_unique<Agreement>(team, false);
    if (begins && !waits) {
        tuning.pace.begin();
        return MPI_SUCCESS;
    }
    while (!tuning.agreement->sums.step())
        if (!waits) return MPI_SUCCESS;
    const std::unique_ptr<Agreement> agreed = std::move(tuning.agreement);
    const int error = unless_no_agreement(comm, [&] {
        conclude(team, *agreed);
        return MPI_SUCCESS;
    });
    if (error != MPI_SUCCESS) lose_agreement(team, error);
    return error;
}

void takes_part_no_longer() {
    any_lost.store(true, std::memory_order_relaxed);
}

void lose_agreement(Team& team, int error) {
    takes_part_no_longer();
    team.tuning->lost = error;
    team.tuning->pace.always();
}

void drop_agreement(Team& team) {
    advance_dropped();
    if (team.tuning == nullptr) return;
    for (auto* agreement : {&team.tuning->agreement, &team.tuning->posted.agreement}) {
        if (*agreement == nullptr) continue;
        retain(team);
        const std::lock_guard lock(dropped_mutex);
        dropped.push_back({std::move(*agreement), &team});
    }
}

void open_tuning(Team& team, const std::vector<int>& members) {
    team.tuning = make_owned<TeamTuning>(measured_costs, team_shape_of(members), team.id);
    list_for_switches(team);
}

void close_tuning(Team& team) {
    if (team.tuning == nullptr) return;
    drop_agreement(team);
    remember(team.tuning->choices.learned());
    unlist_for_switches(team);
}

void keep_what_was_learned() {
    for (Team* team : listed_teams()) {
        drop_agreement(*team);
        remember(team->tuning->choices.learned());
    }
    // A rank that has lost an agreement takes part in no later one of its communicator.
    int lost = any_lost.load(std::memory_order_relaxed) ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &lost, 1, MPI_INT, MPI_MAX, runtime().service);
    for (Backoff backoff; lost == 0 && advance_dropped();)
        backoff.pause();
    for (Dropped& one : std::exchange(dropped, {})) {
        one.agreement.reset();
        release(*one.team);
    }
    write_signature();
}

}  // namespace offpath::mpi
