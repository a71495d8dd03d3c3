#include "agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/clock.h"
#include "communicators/agreeing.h"
#include "explain.h"
#include "job_settings.h"
#include "runtime/error_handlers.h"
#include "runtime/runtime.h"
#include "signature_file.h"
#include "switches.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t buckets = 256;

// All teams, and the latest switch that this process knows of.
std::mutex agreements_mutex;
std::vector<Team*> teams;
Switch latest;
// The largest number of calls made on ended teams, by bucket. Another rank may not have made these calls yet,
// and must make them as this rank did.
std::array<std::uint64_t, buckets> calls_of_gone{};

Switch latest_known() {
    const std::lock_guard lock(agreements_mutex);
    return latest;
}

std::uint64_t& bucket_of(std::array<std::uint64_t, buckets>& calls, const Team& team) {
    return calls[(team.tuning->id * 0x9E3779B97F4A7C15U) >> 56];
}

void follow(Team& team, std::uint64_t from, const Switch& wanted) {
    team.tuning->choices.switch_at(from, wanted.ops);
    team.tuning->switched_to = wanted.number;
}

// Call it when all ranks of the world are here and no other thread calls. Computes, for each team, the
// largest number of calls that any rank has made on it. A team that shares its bucket with a busier one
// follows later than necessary, but at the same call on all ranks.
void follow_everywhere(const Team& here, MPI_Comm comm, const Switch& wanted) {
    std::array<std::uint64_t, buckets> mine = calls_of_gone, all{};
    for (const Team* team : teams) {
        std::uint64_t& calls = bucket_of(mine, *team);
        calls = std::max(calls, team->tuning->choices.calls());
    }
    const bool told =
        PMPI_Allreduce(mine.data(), all.data(), buckets, MPI_UINT64_T, MPI_MAX, comm) == MPI_SUCCESS;
    if (!all_know(comm, told)) return;  // each follows at its own next agreement
    for (Team* team : teams)
        if (team != &here) follow(*team, bucket_of(all, *team), wanted);
}

// The words of an agreement: the time since the last one, the switch, and the slots' measurements.
struct AgreedWord {
    enum : std::size_t { elapsed, number, operations, blocking_operations, square_of_number, count };
};

std::vector<std::uint64_t> words_of(const Team& team, bool whole_world, const Switch& known,
                                    std::uint64_t now) {
    std::vector<std::uint64_t> words(AgreedWord::count);
    words[AgreedWord::elapsed] = now - team.tuning->agreed_ns;
    if (whole_world && runtime().rank == 0) {
        const Switch wanted = wanted_switch();
        words[AgreedWord::number] = wanted.number;
        words[AgreedWord::operations] = wanted.ops.nonblocking;
        words[AgreedWord::blocking_operations] = wanted.ops.blocking;
    } else if (!whole_world) {
        words[AgreedWord::number] = known.number;
        words[AgreedWord::square_of_number] = known.number * known.number;
    }
    const std::vector<std::uint64_t> measured = team.tuning->choices.contribute();
    words.insert(words.end(), measured.begin(), measured.end());
    return words;
}

}  // namespace

struct Agreement {
    explicit Agreement(const Team& team)
        : whole_world(team.size == runtime().size),
          known(latest_known()),
          began_ns(now_ns()),
          mine(words_of(team, whole_world, known, began_ns)),
          sums(mine.size()) {}

    bool whole_world;
    Switch known;  // what this rank reports; it may know more later
    std::uint64_t began_ns;
    std::vector<std::uint64_t> mine, sums;
    // The two steps of an agreement that goes on from call to call.
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;  // of beginning the step
    bool confirms = false;    // the second step: whether all ranks have the sums
    int has_sums = 0, all_have = 0;
};

namespace {

// Called on all ranks of the world: all follow rank 0's switch.
void take_up(Team& team, MPI_Comm comm, const std::vector<std::uint64_t>& sums) {
    const Switch wanted{sums[AgreedWord::number],
                        {static_cast<std::uint32_t>(sums[AgreedWord::operations]),
                         static_cast<std::uint32_t>(sums[AgreedWord::blocking_operations])}};
    if (wanted.number <= team.tuning->switched_to) return;
    const std::lock_guard lock(agreements_mutex);
    const bool news = wanted.number > latest.number;
    if (news) latest = wanted;
    follow(team, team.tuning->choices.calls(), wanted);
    if (news && !runtime().threads) follow_everywhere(team, comm, wanted);
    if (news && runtime().rank == 0) explain_switch(team, wanted.ops);
}

// Called on a part of the world: follow the switch that all members already know. The members know the same
// switch exactly if the square of the sum of their numbers has its largest possible value, `ranks` times the
// sum of the squares. `known` is what this rank reported; it may know more by now.
void catch_up(Team& team, const std::vector<std::uint64_t>& sums, const Switch& known) {
    const auto ranks = static_cast<std::uint64_t>(team.size);
    if (ranks * sums[AgreedWord::square_of_number] != sums[AgreedWord::number] * sums[AgreedWord::number])
        return;
    if (sums[AgreedWord::number] == ranks * known.number && known.number > team.tuning->switched_to)
        follow(team, team.tuning->choices.calls(), known);
}

void conclude(Team& team, MPI_Comm comm, const Agreement& agreed) {
    TeamTuning& tuning = *team.tuning;
    const auto ranks = static_cast<std::uint64_t>(team.size);
    const std::uint64_t passed_ns = agreed.sums[AgreedWord::elapsed] / ranks;
    tuning.agreed_ns = agreed.began_ns;
    tuning.pace.set(passed_ns, std::uint64_t{1'000'000} * tuning_settings.agree_ms);
    if (agreed.whole_world) {
        take_up(team, comm, agreed.sums);
    } else {
        catch_up(team, agreed.sums, agreed.known);
    }
    const std::span<const std::uint64_t> measured = std::span(agreed.sums).subspan(AgreedWord::count);
    // Without measurements there may be some by now.
    if (measured.empty()) return;
    for (const Slot* slot : tuning.choices.conclude(measured, ranks, passed_ns))
        explain_finding(team, *slot);
}

// The error of the step in progress, which ends here.
int result_of(Agreement& agreement) {
    return agreement.error == MPI_SUCCESS ? PMPI_Wait(&agreement.request, MPI_STATUS_IGNORE)
                                          : agreement.error;
}

// The steps of all_know(), each of which ends in the call after the one in which it begins. All ranks have
// made that call, so the wait is short.
void go_on(Team& team, MPI_Comm comm) {
    TeamTuning& tuning = *team.tuning;
    const int error = result_of(*tuning.agreement);
    if (Agreement& now = *tuning.agreement; !now.confirms) {
        now.confirms = true;
        now.has_sums = error == MPI_SUCCESS ? 1 : 0;
        now.error = PMPI_Iallreduce(&now.has_sums, &now.all_have, 1, MPI_INT, MPI_MIN, comm, &now.request);
        return;
    }
    const std::unique_ptr<Agreement> agreed = std::move(tuning.agreement);
    if (error != MPI_SUCCESS && agreed->has_sums != 0) end_without_agreement(comm, error);
    if (error == MPI_SUCCESS && agreed->all_have != 0) {
        conclude(team, comm, *agreed);
    } else {
        tuning.pace.give_up();
    }
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
      agreed_ns(now_ns()) {}

TeamTuning::~TeamTuning() = default;

void agree(Team& team, MPI_Comm comm) {
    TeamTuning& tuning = *team.tuning;
    // Every rank of `comm` is in the same blocking collective, so the order of collectives allows these.
    const ErrorsReturned errors_returned(comm);
    if (tuning.agreement != nullptr) return go_on(team, comm);
    auto begun = std::make_unique<Agreement>(team);
    const auto words = static_cast<int>(begun->mine.size());
    if (tuning.choices.measures_nothing() && tuning_settings.agree_ms > 0) {
        begun->error = PMPI_Iallreduce(begun->mine.data(), begun->sums.data(), words, MPI_UINT64_T, MPI_SUM,
                                       comm, &begun->request);
        tuning.agreement = std::move(begun);
        tuning.pace.begin();
        return;
    }
    if (all_know(comm, PMPI_Allreduce(begun->mine.data(), begun->sums.data(), words, MPI_UINT64_T, MPI_SUM,
                                      comm) == MPI_SUCCESS))
        conclude(team, comm, *begun);
}

void drop_agreement(Team& team) {
    if (team.tuning == nullptr || team.tuning->agreement == nullptr) return;
    const ErrorsReturned errors_returned(team.comm);
    (void)result_of(*team.tuning->agreement);
    team.tuning->agreement.reset();
}

void open_tuning(Team& team, const std::vector<int>& members) {
    team.tuning = make_owned<TeamTuning>(measured_costs, team_shape_of(members), team.id);
    const std::lock_guard lock(agreements_mutex);
    teams.push_back(&team);
    // A rank that makes a communicator waits for its other members. So all members know the same switches,
    // unless another thread is learning of one right now.
    if (latest.number > 0 && !runtime().threads) follow(team, 0, latest);
}

void close_tuning(Team& team) {
    if (team.tuning == nullptr) return;
    drop_agreement(team);
    remember(team.tuning->choices.learned());
    const std::lock_guard lock(agreements_mutex);
    std::erase(teams, &team);
    std::uint64_t& calls = bucket_of(calls_of_gone, team);
    calls = std::max(calls, team.tuning->choices.calls());
}

void keep_what_was_learned() {
    for (Team* team : teams) {
        drop_agreement(*team);
        remember(team->tuning->choices.learned());
    }
    write_signature();
}

}  // namespace offpath::mpi
