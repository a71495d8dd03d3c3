#include "agreed.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "explain.h"
#include "job_settings.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t buckets = 256;
constexpr std::uint64_t most_counted_in_flight = 1000;

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

// The words of an agreement: the time since the last one, the switch, the calls in flight, and the slots'
// measurements.
struct AgreedWord {
    enum : std::size_t {
        elapsed,
        number,
        operations,
        blocking_operations,
        square_of_number,
        in_flight,
        count
    };
};

// The fourth root of a sum of fourth powers is at least the largest of the numbers, and not much more.
std::uint64_t power_of(std::uint64_t calls) {
    calls = std::min(calls, most_counted_in_flight);
    return calls * calls * calls * calls;
}

std::uint64_t root_of(std::uint64_t sum) {
    std::uint64_t root = 0;
    while (root < 16 * most_counted_in_flight && root * root * root * root < sum)
        ++root;
    return root;
}

std::vector<std::uint64_t> words_of(const Team& team, bool posted, bool whole_world, const Switch& known,
                                    std::uint64_t now) {
    TeamTuning& tuning = *team.tuning;
    std::vector<std::uint64_t> words(AgreedWord::count);
    words[AgreedWord::elapsed] = now - (posted ? tuning.posted.agreed_ns : tuning.agreed_ns);
    if (whole_world && runtime().rank == 0) {
        const Switch wanted = wanted_switch();
        words[AgreedWord::number] = wanted.number;
        words[AgreedWord::operations] = wanted.ops.nonblocking;
        words[AgreedWord::blocking_operations] = wanted.ops.blocking;
    } else if (!whole_world) {
        words[AgreedWord::number] = known.number;
        words[AgreedWord::square_of_number] = known.number * known.number;
    }
    words[AgreedWord::in_flight] = power_of(tuning.posted.most_in_flight);
    if (posted || !tuning.posted.used) {
        const std::vector<std::uint64_t> measured = tuning.choices.contribute();
        words.insert(words.end(), measured.begin(), measured.end());
    }
    return words;
}

}  // namespace

namespace {

// Called on all ranks of the world: all follow rank 0's switch.
void take_up(Team& team, std::span<const std::uint64_t> sums, bool all_are_here) {
    const Switch wanted{sums[AgreedWord::number],
                        {static_cast<std::uint32_t>(sums[AgreedWord::operations]),
                         static_cast<std::uint32_t>(sums[AgreedWord::blocking_operations])}};
    if (wanted.number <= team.tuning->switched_to) return;
    const std::lock_guard lock(agreements_mutex);
    const bool news = wanted.number > latest.number;
    if (news) latest = wanted;
    follow(team, team.tuning->choices.calls(), wanted);
    if (news && all_are_here && !runtime().threads) follow_everywhere(team, wanted);
    if (news && runtime().rank == 0) explain_switch(team, wanted.ops);
}

// Called on a part of the world: follow the switch that all members already know. The members know the same
// switch exactly if the square of the sum of their numbers has its largest possible value, `ranks` times the
// sum of the squares. `known` is what this rank reported; it may know more by now.
void catch_up(Team& team, std::span<const std::uint64_t> sums, const Switch& known) {
    const auto ranks = static_cast<std::uint64_t>(team.size);
    if (ranks * sums[AgreedWord::square_of_number] != sums[AgreedWord::number] * sums[AgreedWord::number])
        return;
    if (sums[AgreedWord::number] == ranks * known.number && known.number > team.tuning->switched_to)
        follow(team, team.tuning->choices.calls(), known);
}

}  // namespace

void conclude(Team& team, const Agreement& agreed) {
    TeamTuning& tuning = *team.tuning;
    Pace& pace = agreed.posted ? tuning.posted.pace : tuning.pace;
    const std::optional<std::span<const std::uint64_t>> sums = agreed.sums.result();
    if (!sums) return pace.give_up();
    const auto ranks = static_cast<std::uint64_t>(team.size);
    const std::uint64_t passed_ns = (*sums)[AgreedWord::elapsed] / ranks;
    (agreed.posted ? tuning.posted.agreed_ns : tuning.agreed_ns) = agreed.began_ns;
    if (agreed.posted) tuning.posted.in_flight = root_of((*sums)[AgreedWord::in_flight]);
    pace.set(passed_ns, std::uint64_t{1'000'000} * tuning_settings.agree_ms);
    if (agreed.whole_world) {
        take_up(team, *sums, !agreed.posted);
    } else {
        catch_up(team, *sums, agreed.known);
    }
    const std::span<const std::uint64_t> measured = sums->subspan(AgreedWord::count);
    // Without measurements there may be some by now.
    if (measured.empty()) return;
    for (const Slot* slot : tuning.choices.conclude(measured, ranks, passed_ns))
        explain_finding(team, *slot);
}

Agreement::Agreement(Team& team, bool is_posted)
    : posted(is_posted),
      whole_world(team.size == runtime().size),
      known(latest_known()),
      began_ns(now_ns()),
      sums(team, CombinedWords::How::sum, words_of(team, posted, whole_world, known, began_ns),
           posted ? SmallLane::of_posted_agreements() : SmallLane::of_agreements()),
      under_way(posted ? std::make_unique<UnderWay>(sums) : nullptr) {}

void list_for_switches(Team& team) {
    const std::lock_guard lock(agreements_mutex);
    teams.push_back(&team);
    // A rank that makes a communicator waits for its other members. So all members know the same switches,
    // unless another thread is learning of one right now.
    if (latest.number > 0 && !runtime().threads) follow(team, 0, latest);
}

void unlist_for_switches(Team& team) {
    const std::lock_guard lock(agreements_mutex);
    std::erase(teams, &team);
    std::uint64_t& calls = bucket_of(calls_of_gone, team);
    calls = std::max(calls, team.tuning->choices.calls());
}

std::vector<Team*> listed_teams() {
    const std::lock_guard lock(agreements_mutex);
    return teams;
}

}  // namespace offpath::mpi
