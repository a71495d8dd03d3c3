// Gives every rank what only rank 0 has read.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

namespace minimd {

// Returns rank 0's `text` on every rank. Collective.
std::string shared_string(const std::string& text, MPI_Comm comm);

// Throws rank 0's `error` as a UsageError on every rank, unless it is empty. Collective.
void throw_shared(const std::string& error, MPI_Comm comm);

// Returns the text of the file at `path`, which rank 0 reads. Returns nothing on every rank if rank 0 cannot
// read it. Collective.
std::optional<std::string> shared_text(const std::string& path, MPI_Comm comm);

}  // namespace minimd
