// Open MPI's components stay in memory until the process ends.
#pragma once

namespace offpath::mpi {

// Call before PMPI_Finalize. Open MPI 4 unloads its components there while its progress thread may still run
// a call of theirs (that of mca_pmix_ext3x has been seen): under load the program then ends with SIGSEGV.
// Does nothing with other MPI libraries.
void keep_components();

}  // namespace offpath::mpi
