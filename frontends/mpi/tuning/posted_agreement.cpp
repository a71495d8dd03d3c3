#include "posted_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "agreed.h"
#include "base/patience.h"
#include "runtime/backoff.h"
#include "runtime/outstanding_counts.h"
#include "runtime/parts.h"

namespace offpath::mpi {
namespace {

// Calls without a blocking one, after which the program seems to need none.
constexpr std::uint64_t least_alone = 16;
// Calls until the result is taken up, beyond those that may be in flight.
constexpr std::uint64_t least_delay = 8;

std::uint64_t delay_of(const PostedAgreements& posted) {
    return least_delay + posted.in_flight;
}

// The agreement itself goes on, because the other ranks may need it.
void lose(Team& team) {
    PostedAgreements& posted = team.tuning->posted;
    posted.unknown = true;
    takes_part_no_longer();
    warn(Code::slower_way,
         fmt::format("rank {}: the ranks of a communicator of {} have not agreed in time on the engine of "
                     "its collectives; it leaves the device",
                     runtime().rank, team.size));
    team.tuning->choices.pass_over();
    team.departure->report();
}

void take_up(Team& team) {
    PostedAgreements& posted = team.tuning->posted;
    for (Backoff backoff; !posted.agreement->under_way->advance(); backoff.pause()) {
        // A rank that has left the device takes part no longer.
        if (team.departure->has_reported() || backoff.waited_ns() > lost_after_ns()) return lose(team);
        progress_parts();
    }
    try {
        conclude(team, *posted.agreement);
    } catch (const NoAgreement&) {
        return lose(team);
    }
    posted.agreement.reset();
    posted.calls = 0;
}

void begin(Team& team) {
    PostedAgreements& posted = team.tuning->posted;
    posted.used = true;
    posted.calls = 0;
    posted.pace.begin();
    posted.agreement = std::make_unique<Agreement>(team, true);
}

}  // namespace

void agree_meanwhile(Team& team) {
    TeamTuning& tuning = *team.tuning;
    PostedAgreements& posted = tuning.posted;
    if (posted.unknown || tuning.lost != MPI_SUCCESS || !SmallLane::of_posted_agreements().usable()) return;
    // On the device, and on either engine as far as they are measured.
    posted.most_in_flight = std::max<std::uint64_t>(
        {posted.most_in_flight, team.outstanding.load(std::memory_order_relaxed), outstanding.followed});
    ++posted.calls;
    ++posted.alone;
    const bool due = posted.pace.due();
    if (posted.agreement != nullptr) {
        if (posted.calls >= delay_of(posted)) take_up(team);
        return;
    }
    if ((posted.alone < least_alone && !posted.used) || posted.calls < delay_of(posted) ||
        tuning.agreement != nullptr)
        return;
    if (due || tuning.choices.awaits_agreement(posted.in_flight, delay_of(posted))) begin(team);
}

}  // namespace offpath::mpi
