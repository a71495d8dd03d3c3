// The clocks of a job's machines. Ranks whose clock is not that of rank 0 measure the difference, once when
// the trace begins and once when it ends. Records of Kind::clock tell the reader, which aligns the files by
// them. Threads: those of MPI_Init and MPI_Finalize.
#pragma once

namespace offpath::traced {

// All ranks call both, whether they have a trace or not.
void compare_clocks_at_begin();
void compare_clocks_at_end();

}  // namespace offpath::traced
