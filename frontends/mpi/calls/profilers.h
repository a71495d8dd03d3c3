// Profilers of the program: a library, or the program itself, that defines MPI_X and calls PMPI_X. Without
// the front end, the program's calls reach the profiler, and its PMPI calls the MPI library. With it, they go
// from the program to the profiler, from there to the front end, and then to the MPI library. So a profiler
// sees the program's calls, and the front end sees them all. The loader has other addresses in its slots,
// which are changed when the front end is loaded and in MPI_Init. Threads: see loaded_object.h.
#pragma once

#include <string>

namespace offpath::mpi {

// In a function that the program has called: puts profilers before the front end in libraries that were
// opened since the front end was loaded. If the caller is in one of them, returns the profiler's function of
// this name, which the call has missed; else null.
void* profiler_passed_by(const char* name, const void* caller);

// Why a profiler does not see the program's calls, or the front end not those of the profiler; empty: all is
// well.
std::string why_profilers_are_not_first();

}  // namespace offpath::mpi
