// What is said at the end of a program whose MPI the front end has not seen begin: why nothing was offloaded.
// Threads: any.
#pragma once

namespace offpath::mpi {

// The program's MPI_Init came here.
void note_init();
// The program has begun a session of MPI 4.
void note_session();

}  // namespace offpath::mpi
