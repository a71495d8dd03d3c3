// Agreeing: whether something holds on all ranks, for calls that make or change an object that all of them
// must see alike.
//
// Ranks of a team agree by messages of our own (combined_words.h). Until a communicator has a team, its ranks
// agree by the host's collectives, of which an error may reach some ranks only. So the ranks compare first
// what they have, and then whether each of them knows the result. A rank whose call fails the first time says
// no the second time. A rank whose call fails the second time knows the answer if its own part of it was no.
//
// A rank that cannot know what the others know ends its operation (NoAgreement). The program's call then
// calls the error handler of its communicator or window.
//
// Threads: any. All calls are collective over the team or communicator. A rank that the host's MPI lets take
// no part at all leaves the others in the host's MPI, as without this library.
#pragma once

#include <mpi.h>

#include <utility>

#include "combined_words.h"

namespace offpath::mpi {

// Whether all ranks pass true. May throw NoAgreement.
bool all_agree(Team& team, bool mine);

// The same for a communicator of ours, or one that the program does not have yet. Its errors return.
bool all_agree(MPI_Comm comm, bool mine);

// The same where `mine` tells whether this rank knows the result of a collective on `comm` that has just been
// made: the second step only.
bool all_know(MPI_Comm comm, bool mine);

// Says that a call of the program ends without an agreement of the ranks of `comm`.
void say_no_agreement(MPI_Comm comm, const NoAgreement& why);

// The result of `call()`, a call of the program on `comm`. Where its ranks do not agree, the communicator's
// error handler is called.
template <typename Call>
int unless_no_agreement(MPI_Comm comm, Call call) {
    try {
        return call();
    } catch (const NoAgreement& why) {
        say_no_agreement(comm, why);
        PMPI_Comm_call_errhandler(comm, why.error);
        return why.error;
    }
}

}  // namespace offpath::mpi
