// What rank 0 alone can know, on every rank.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

namespace minimd {

// Rank 0's `text`. Collective.
std::string shared_string(const std::string& text, MPI_Comm comm);

// Throws rank 0's `error` as a UsageError on every rank, if it is not empty. Collective.
void throw_shared(const std::string& error, MPI_Comm comm);

// The text of the file at `path`, which rank 0 reads; nothing on every rank when it cannot. Collective.
std::optional<std::string> shared_text(const std::string& path, MPI_Comm comm);

}  // namespace minimd
