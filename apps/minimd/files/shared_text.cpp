#include "minimd/files/shared_text.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>

#include "support/mpi_program.h"

namespace minimd {

namespace {

std::optional<std::string> whole_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    // An empty file is no error: it gives nothing to insert. A folder can be opened, but reading it is an
    // error.
    if (file.peek() == std::ifstream::traits_type::eof()) {
        if (file.bad()) return std::nullopt;
        return std::string();
    }
    std::ostringstream all;
    all << file.rdbuf();
    return all && !file.bad() ? std::optional(all.str()) : std::nullopt;
}

}  // namespace

std::string shared_string(const std::string& text, MPI_Comm comm) {
    std::string result = text;
    auto bytes = static_cast<std::int64_t>(text.size());
    MPI_Bcast(&bytes, 1, MPI_INT64_T, 0, comm);
    if (bytes > std::numeric_limits<int>::max())
        throw mpi_support::UsageError("a text of 2 GiB or more cannot be shared");
    result.resize(static_cast<std::size_t>(bytes));
    MPI_Bcast(result.data(), static_cast<int>(bytes), MPI_CHAR, 0, comm);
    return result;
}

void throw_shared(const std::string& error, MPI_Comm comm) {
    const std::string said = shared_string(error, comm);
    if (!said.empty()) throw mpi_support::UsageError(said);
}

std::optional<std::string> shared_text(const std::string& path, MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    const std::optional<std::string> text = rank == 0 ? whole_file(path) : std::nullopt;
    int found = text ? 1 : 0;
    MPI_Bcast(&found, 1, MPI_INT, 0, comm);
    if (found == 0) return std::nullopt;
    return shared_string(text.value_or(""), comm);
}

}  // namespace minimd
