// Agreements of a communicator's ranks on everything that changes while the program runs: results of
// refinement, switches by the user, and the ways of its windows (rma/host_or_device.h).
//
// Ranks agree in blocking collectives. There all ranks of the communicator take part at the same place in its
// order of collectives, and MPI lets such a call wait for all of them. A call that only starts something must
// not wait for other ranks, so its ranks agree there without a wait: on the loss of a device
// (runtime/departure.h), and where they call no blocking one (posted_agreement.h). The
// interval is counted in such calls: as many as take about a quarter of a second, a number which is also
// agreed on. It is shorter if a change of the program's behaviour must be detected soon (refinement.h).
//
// While a communicator measures nothing, only switches are agreed on there. The ranks then do not wait for
// each other: they begin in one such call, and make one step in each of the following ones
// (communicators/combined_words.h). Where ranks are out of step, as in a pipeline, waiting would cost much
// more than the small messages.
//
// A switch (MPI_Pcontrol, the control file) is rank 0's of the world. It takes effect in a blocking
// collective on MPI_COMM_WORLD, for all communicators at once: on each communicator from the largest number
// of calls that any rank has made. With MPI_THREAD_MULTIPLE another thread may be calling meanwhile, and
// after a posted agreement other ranks may be. Each communicator then follows at its own next agreement.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "choices.h"
#include "communicators/communicators.h"
#include "pace.h"
#include "runtime/runtime.h"

namespace offpath::mpi {

struct Agreement;  // one in progress

// Agreements that go on meanwhile.
struct PostedAgreements {
    std::unique_ptr<Agreement> agreement;
    Pace pace;
    std::uint64_t alone = 0;           // calls since the last blocking one
    std::uint64_t calls = 0;           // since the agreement has begun, or the last one was taken up
    std::uint64_t in_flight = 4;       // at least as many calls as any rank had in flight, as agreed
    std::uint64_t most_in_flight = 0;  // on this rank
    std::uint64_t agreed_ns = 0;       // when the last one began
    bool used = false;
    bool unknown = false;  // this rank does not know what the others have agreed on
};

// What a team keeps. Collectives of a communicator are ordered, so it needs no lock.
struct TeamTuning {
    TeamTuning(const Table& table, TeamShape shape, std::uint64_t team_id);
    ~TeamTuning();

    Choices choices;
    Pace pace;
    std::uint64_t id;               // of the team, the same on all its ranks
    std::uint64_t switched_to = 0;  // the number of the latest switch that it follows
    std::uint64_t agreed_ns = 0;    // when it agreed last
    std::unique_ptr<Agreement> agreement;
    PostedAgreements posted;
    int lost = MPI_SUCCESS;  // the error of an agreement whose result this rank does not know
};

// Makes an agreement, or the next step of one. `comm` is the team's. An error is the call's, and was
// reported.
int agree(Team& team, MPI_Comm comm);
// This rank does not know what the others have agreed on, nor in which call they agree next. So all later
// calls of agree() end with this error.
void lose_agreement(Team& team, int error);
// This rank has left the agreements of a communicator, so MPI_Finalize waits for none.
void takes_part_no_longer();
// The communicator ends: an agreement that goes on will have no result. Local; waits for no other rank.
void drop_agreement(Team& team);

// Called when a team begins and ends.
void open_tuning(Team& team, const std::vector<int>& members);
void close_tuning(Team& team);

// In MPI_Finalize, on all ranks: hands what the communicators have learned to the next run of the program
// (signature_file.h), and drops the agreements of communicators that the program did not free.
void keep_what_was_learned();

}  // namespace offpath::mpi
