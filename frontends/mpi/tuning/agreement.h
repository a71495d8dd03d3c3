// Where the ranks of a communicator agree on what changes while the program runs: what refinement found, what
// somebody switched, and the ways of its windows (rma/ways.h).
//
// In blocking collectives. There all ranks of the communicator take part at the same place of its order
// of collectives, and MPI lets such a call wait for all of them; a call that only starts something must not
// wait for anybody, so nothing but the end of a device is agreed on there (votes.h). How often, is counted in
// such calls: so many as take about a quarter of a second, which is agreed on as well; sooner where it
// matters how soon a change of the program's is noticed (refinement.h).
//
// A switch (MPI_Pcontrol, the control file) is rank 0's of the world. It is taken up in a blocking collective
// on MPI_COMM_WORLD, for all communicators at once: at each one's largest number of calls that any rank has
// made. With MPI_THREAD_MULTIPLE another thread may be calling meanwhile, so each communicator follows at its
// own next agreement.
#pragma once

#include <cstdint>

#include "../communicators.h"
#include "../rma/ways.h"
#include "../runtime.h"
#include "choices.h"
#include "votes.h"

namespace offpath::mpi {

// How many synchronizing calls there are between two agreements. Pure.
class Pace {
  public:
    // Counts one; true when this is one to agree in.
    bool due() { return ++calls_ >= every_; }
    // After an agreement: the time that the calls took, and that there should be between two agreements; the
    // same values on all ranks.
    void set(std::uint64_t nanoseconds, std::uint64_t wanted_between);

  private:
    std::uint64_t calls_ = 0;
    std::uint64_t every_ = 8;
};

// What a team keeps. Collectives of a communicator are ordered, so nothing here needs a lock of its own.
struct TeamTuning {
    TeamTuning(const Table& table, TeamShape shape, std::uint64_t team_id);

    Choices choices;
    Pace pace;
    std::uint64_t id;               // of the team, the same on all its ranks
    std::uint64_t switched_to = 0;  // the number of the latest switch that it follows
    std::uint64_t agreed_ns = 0;    // when it agreed last
    Votes votes;
};

void agree(Team& team, MPI_Comm comm);

// Of a call that goes to the device, on all ranks: whether it still does. `start`: of a persistent request.
bool stays_on_device(Team& team, bool start = false);
// Before a communicator goes, whose votes have to be over. The one waits for that; the other keeps it where
// another rank has not come to the vote, as persistent messages do, so that nobody has to wait.
void settle_votes(Team& team);
void keep_for_votes(Team& team);
// In MPI_Finalize: of all communicators.
void settle_all_votes();

// Blocking collectives that no rank leaves before all have entered.
inline bool synchronizes(Op op) {
    switch (op) {
        case Op::ialltoall:
        case Op::ialltoallv:
        case Op::ialltoallw:
        case Op::iallgather:
        case Op::iallgatherv:
        case Op::iallreduce:
        case Op::ireduce_scatter:
        case Op::ireduce_scatter_block:
        case Op::ibarrier:
            return true;
        default:
            return false;
    }
}

// In a blocking collective that no rank leaves before all have entered it. True: nothing is left to be done
// for a barrier.
inline bool at_synchronization(MPI_Comm comm, Op op) {
    if (!active() || comm == MPI_COMM_NULL) return false;
    Team& team = find_team(comm);
    if (team.tuning == nullptr) return false;
    if (team.tuning->pace.due() || team.tuning->choices.wants_agreement_soon()) agree(team, comm);
    return team.meetings != nullptr && meet_for_windows(*team.meetings, comm, op == Op::ibarrier);
}

// When a team begins and ends.
void open_tuning(Team& team, TeamShape shape, std::uint64_t id);
void close_tuning(Team& team);

}  // namespace offpath::mpi
