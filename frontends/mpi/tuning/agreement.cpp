#include "agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "communicators/agreeing.h"
#include "explain.h"
#include "job_settings.h"
#include "runtime/backoff.h"
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
void follow_everywhere(Team& here, const Switch& wanted) {
    std::array<std::uint64_t, buckets> mine = calls_of_gone, all{};
    for (const Team* team : teams) {
        std::uint64_t& calls = bucket_of(mine, *team);
        calls = std::max(calls, team->tuning->choices.calls());
    }
    const std::vector<std::uint64_t> largest =
        combine_now(here, CombinedWords::How::largest, {mine.begin(), mine.end()});
    if (largest.empty()) return;  // each follows at its own next agreement
    std::copy(largest.begin(), largest.end(), all.begin());
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
    explicit Agreement(Team& team)
        : whole_world(team.size == runtime().size),
          known(latest_known()),
          began_ns(now_ns()),
          sums(team, CombinedWords::How::sum, words_of(team, whole_world, known, began_ns)) {}

    bool whole_world;
    Switch known;  // what this rank reports; it may know more later
    std::uint64_t began_ns;
    CombinedWords sums;
};

namespace {

// Called on all ranks of the world: all follow rank 0's switch.
void take_up(Team& team, const std::vector<std::uint64_t>& sums) {
    const Switch wanted{sums[AgreedWord::number],
                        {static_cast<std::uint32_t>(sums[AgreedWord::operations]),
                         static_cast<std::uint32_t>(sums[AgreedWord::blocking_operations])}};
    if (wanted.number <= team.tuning->switched_to) return;
    const std::lock_guard lock(agreements_mutex);
    const bool news = wanted.number > latest.number;
    if (news) latest = wanted;
    follow(team, team.tuning->choices.calls(), wanted);
    if (news && !runtime().threads) follow_everywhere(team, wanted);
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

// The agreement has ended.
void conclude(Team& team, const Agreement& agreed) {
    TeamTuning& tuning = *team.tuning;
    const std::vector<std::uint64_t>* const sums = agreed.sums.result();
    if (sums == nullptr) return tuning.pace.give_up();
    const auto ranks = static_cast<std::uint64_t>(team.size);
    const std::uint64_t passed_ns = (*sums)[AgreedWord::elapsed] / ranks;
    tuning.agreed_ns = agreed.began_ns;
    tuning.pace.set(passed_ns, std::uint64_t{1'000'000} * tuning_settings.agree_ms);
    if (agreed.whole_world) {
        take_up(team, *sums);
    } else {
        catch_up(team, *sums, agreed.known);
    }
    const std::span<const std::uint64_t> measured = std::span(*sums).subspan(AgreedWord::count);
    // Without measurements there may be some by now.
    if (measured.empty()) return;
    for (const Slot* slot : tuning.choices.conclude(measured, ranks, passed_ns))
        explain_finding(team, *slot);
}

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
        if (!one.agreement->sums.advance()) return false;
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
      agreed_ns(now_ns()) {}

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
    if (begins) tuning.agreement = std::make_unique<Agreement>(team);
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

void lose_agreement(Team& team, int error) {
    any_lost.store(true, std::memory_order_relaxed);
    team.tuning->lost = error;
    team.tuning->pace.always();
}

void drop_agreement(Team& team) {
    advance_dropped();
    if (team.tuning == nullptr || team.tuning->agreement == nullptr) return;
    retain(team);
    const std::lock_guard lock(dropped_mutex);
    dropped.push_back({std::move(team.tuning->agreement), &team});
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
