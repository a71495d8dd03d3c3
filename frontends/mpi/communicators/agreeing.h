// Agreeing: whether something holds on all ranks of a communicator, for calls that make or change an object
// that all of them must see alike.
//
// The host's MPI may report an error of a collective on some ranks only. So the ranks compare first what they
// have, and then whether each of them knows the result. A rank whose call fails the first time says no the
// second time. A rank whose call fails the second time knows the answer if its own part of it was no.
// Otherwise it cannot know whether the others go on, and ends the job.
//
// Threads: any. All calls are collective over `comm`, whose error handler does not hear of a failure. A rank
// that the host's MPI lets take no part at all leaves the others in the host's MPI, as without this library.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

// Whether all ranks pass true.
bool all_agree(MPI_Comm comm, bool mine);

// The same where `mine` tells whether this rank knows the result of a collective on `comm` that has just been
// made: the second step only.
bool all_know(MPI_Comm comm, bool mine);

// Ends the job. The host's MPI has failed with `error` on this rank where all ranks had to agree.
[[noreturn]] void end_without_agreement(MPI_Comm comm, int error);

}  // namespace offpath::mpi
