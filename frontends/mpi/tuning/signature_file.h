// The signature's file (signature.h): rank 0 reads it in MPI_Init and writes it in MPI_Finalize, in the
// directory that OFFPATH_SIGNATURES names. A file that is damaged, or belongs to another user, is reported
// and ignored. Jobs may write at the same time: a file changes as a whole, and the last one stays.
//
// Nothing is read or written where nothing is learned: with OFFPATH_REFINE=off, OFFPATH_MIN_BYTES or
// OFFPATH_DETERMINISTIC=1. Threads: the thread in MPI_Init or MPI_Finalize; remember() from any.
#pragma once

#include <span>
#include <vector>

#include "signature.h"

namespace offpath::mpi {

// In MPI_Init, once attached: gives all ranks what an earlier run has learned. Collective over the world.
void read_signature();
// Constant from then on.
std::span<const LearnedRow> remembered_rows();

// What a communicator of rank 0 has learned; others do nothing.
void remember(const std::vector<LearnedRow>& rows);
// On rank 0: writes the file, if anything was learned.
void write_signature();

}  // namespace offpath::mpi
