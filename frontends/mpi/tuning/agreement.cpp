#include "agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "../losses.h"
#include "../runtime.h"
#include "base/clock.h"
#include "explain.h"
#include "switches.h"

namespace offpath::mpi {
namespace {

// A phase of quick calls says little about the next.
constexpr std::uint64_t fastest_growth = 4;
constexpr std::size_t buckets = 256;

// Which teams there are, and the latest switch that this process knows of.
std::mutex mutex;
std::vector<Team*> teams;
// The program has freed their communicators, on which a vote is under way.
std::vector<Team*> kept_for_votes;
Switch latest;
// The most calls that were made on teams that are no more, by bucket. Another rank may not have made them
// yet, and has to make them as this one did.
std::array<std::uint64_t, buckets> calls_of_gone{};

Switch latest_known() {
    const std::lock_guard lock(mutex);
    return latest;
}

std::uint64_t& bucket_of(std::array<std::uint64_t, buckets>& calls, const Team& team) {
    return calls[(team.tuning->id * 0x9E3779B97F4A7C15U) >> 56];
}

void follow(Team& team, std::uint64_t from, const Switch& wanted) {
    team.tuning->choices.switch_at(from, wanted.ops);
    team.tuning->switched_to = wanted.number;
}

// All ranks of the world are here, and no other thread calls. For each team, the most calls that any rank has
// made on it; a team that shares its bucket with a busier one follows later than it could, but on all ranks
// alike.
void follow_everywhere(const Team& here, MPI_Comm comm, const Switch& wanted) {
    std::array<std::uint64_t, buckets> mine = calls_of_gone, all{};
    for (const Team* team : teams) {
        std::uint64_t& calls = bucket_of(mine, *team);
        calls = std::max(calls, team->tuning->choices.calls());
    }
    PMPI_Allreduce(mine.data(), all.data(), buckets, MPI_UINT64_T, MPI_MAX, comm);
    for (Team* team : teams)
        if (team != &here) follow(*team, bucket_of(all, *team), wanted);
}

// The words of an agreement: the time since the last one, the switch, who has met a loss, what slots
// measured.
enum Word : std::size_t {
    elapsed,
    number,
    operations,
    blocking_operations,
    square_of_number,
    losses,
    fixed_words
};

std::vector<std::uint64_t> words_of(const Team& team, bool whole_world, const Switch& known,
                                    std::uint64_t now) {
    std::vector<std::uint64_t> words(fixed_words);
    words[elapsed] = now - team.tuning->agreed_ns;
    if (whole_world && runtime().rank == 0) {
        const Switch wanted = wanted_switch();
        words[number] = wanted.number;
        words[operations] = wanted.ops.nonblocking;
        words[blocking_operations] = wanted.ops.blocking;
    } else if (!whole_world) {
        words[number] = known.number;
        words[square_of_number] = known.number * known.number;
    }
    words[losses] = met_loss(team) ? 1 : 0;
    const std::vector<std::uint64_t> measured = team.tuning->choices.contribute();
    words.insert(words.end(), measured.begin(), measured.end());
    return words;
}

// On all ranks of the world: rank 0's switch is everybody's.
void take_up(Team& team, MPI_Comm comm, const std::vector<std::uint64_t>& sums) {
    const Switch wanted{sums[number],
                        {static_cast<std::uint32_t>(sums[operations]),
                         static_cast<std::uint32_t>(sums[blocking_operations])}};
    if (wanted.number <= team.tuning->switched_to) return;
    const std::lock_guard lock(mutex);
    const bool news = wanted.number > latest.number;
    if (news) latest = wanted;
    follow(team, team.tuning->choices.calls(), wanted);
    if (news && !runtime().threads) follow_everywhere(team, comm, wanted);
    if (news && runtime().rank == 0) explain_switch(team, wanted.ops);
}

// On part of the world: follow what all members know already. They know the same one if the square of the sum
// of their numbers is as large as it can be. `known`: what this rank said that it knows; it may know more
// now.
void catch_up(Team& team, const std::vector<std::uint64_t>& sums, const Switch& known) {
    const auto ranks = static_cast<std::uint64_t>(team.size);
    if (ranks * sums[square_of_number] != sums[number] * sums[number]) return;
    if (sums[number] == ranks * known.number && known.number > team.tuning->switched_to)
        follow(team, team.tuning->choices.calls(), known);
}

void free_where_votes_are_over() {
    std::vector<Team*> over;
    {
        const std::lock_guard lock(mutex);
        std::erase_if(kept_for_votes, [&](Team* team) {
            if (!team->tuning->votes.over()) return false;
            over.push_back(team);
            return true;
        });
    }
    for (Team* team : over)
        end_message(*team);
}

// On all ranks of the team at the same place of its collectives.
void leave_device(Team& team) {
    team.reason = HostReason::no_team;
    if (team.rank == 0)
        say(fmt::format(
            "a device was lost: collectives of a communicator of {} ranks are the host's MPI's from "
            "here on",
            team.size));
}

}  // namespace

void Pace::set(std::uint64_t nanoseconds, std::uint64_t wanted_between) {
    const std::uint64_t each = std::max<std::uint64_t>(nanoseconds / std::max<std::uint64_t>(calls_, 1), 1);
    every_ = std::clamp<std::uint64_t>(wanted_between / each, 1, fastest_growth * every_);
    calls_ = 0;
}

TeamTuning::TeamTuning(const Table& table, TeamShape shape, std::uint64_t team_id)
    : choices(runtime().settings.selection, table, shape, runtime().settings.first_trial_after),
      id(team_id),
      agreed_ns(now_ns()) {}

void agree(Team& team, MPI_Comm comm) {
    TeamTuning& tuning = *team.tuning;
    const std::uint64_t now = now_ns();
    const bool whole_world = team.size == runtime().size;
    const Switch known = latest_known();
    const std::vector<std::uint64_t> mine = words_of(team, whole_world, known, now);
    std::vector<std::uint64_t> sums(mine.size());
    // Every rank of `comm` is in the same blocking collective of it, so this one is in order, too.
    if (PMPI_Allreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM,
                       comm) != MPI_SUCCESS) {
        return;
    }
    const auto ranks = static_cast<std::uint64_t>(team.size);
    tuning.agreed_ns = now;
    tuning.pace.set(sums[elapsed] / ranks, std::uint64_t{1'000'000} * runtime().settings.agree_ms);
    if (sums[losses] > 0 && team.reason == HostReason::none) leave_device(team);
    if (whole_world) {
        take_up(team, comm, sums);
    } else {
        catch_up(team, sums, known);
    }
    const std::span<const std::uint64_t> measured = std::span(sums).subspan(fixed_words);
    for (const Slot* slot : tuning.choices.conclude(measured, ranks, sums[elapsed] / ranks))
        explain_finding(team, *slot);
}

bool stays_on_device(Team& team, bool start) {
    if (team.reason != HostReason::none) return false;
    const MPI_Comm comm = team.comm;
    if (team.tuning == nullptr || comm == MPI_COMM_NULL || (start && !team.of_world)) return true;
    if (team.tuning->votes.stays(met_loss(team), comm, team.size)) return true;
    leave_device(team);
    return false;
}

void settle_votes(Team& team) {
    if (team.tuning != nullptr) team.tuning->votes.settle();
}

void keep_for_votes(Team& team) {
    free_where_votes_are_over();
    if (team.tuning == nullptr || team.tuning->votes.over()) return;
    if (team.of_world) return;
    begin_message(team);
    const std::lock_guard lock(mutex);
    kept_for_votes.push_back(&team);
}

void settle_all_votes() {
    settle_votes(find_team(MPI_COMM_WORLD));
    for (Team* team : kept_for_votes)
        settle_votes(*team);
    free_where_votes_are_over();
}

void open_tuning(Team& team, TeamShape shape, std::uint64_t id) {
    team.tuning = std::make_unique<TeamTuning>(runtime().table, shape, id);
    const std::lock_guard lock(mutex);
    teams.push_back(&team);
    // Whoever makes a communicator waits for its other members, so they all know the same switches; unless
    // another thread is hearing of one right now.
    if (latest.number > 0 && !runtime().threads) follow(team, 0, latest);
}

void close_tuning(Team& team) {
    if (team.tuning == nullptr) return;
    const std::lock_guard lock(mutex);
    std::erase(teams, &team);
    std::uint64_t& calls = bucket_of(calls_of_gone, team);
    calls = std::max(calls, team.tuning->choices.calls());
}

}  // namespace offpath::mpi
