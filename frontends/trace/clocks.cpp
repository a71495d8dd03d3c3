#include "frontends/trace/clocks.h"

#include "frontends/clock/offset.h"
#include "trace/machine_clock.h"
#include "trace/trace.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <vector>

namespace offpath::traced {
namespace {

using Name = std::array<char, 40>;

// Null if all ranks have one clock. Otherwise a communicator of its own, whose messages nobody else receives.
MPI_Comm between_clocks = MPI_COMM_NULL;
// The first rank of each clock but rank 0's.
std::vector<int> first_ranks;

std::vector<int> first_of_other_clocks(const std::vector<Name>& names) {
    std::vector<int> found;
    for (std::size_t rank = 1; rank < names.size(); ++rank) {
        const auto before = names.begin() + static_cast<std::ptrdiff_t>(rank);
        if (std::find(names.begin(), before, names[rank]) == before) found.push_back(static_cast<int>(rank));
    }
    return found;
}

void compare() {
    int rank = 0;
    PMPI_Comm_rank(between_clocks, &rank);
    for (const int other : first_ranks) {
        if (rank == 0) clocks::answer(between_clocks, other);
        if (rank != other) continue;
        const clocks::Offset found = clocks::ask(between_clocks, 0);
        if (!trace::on()) continue;
        trace::put(trace::Kind::clock, trace::Phase::instant, found.at_ns,
                   static_cast<std::uint64_t>(found.ns), static_cast<std::uint64_t>(found.error_ns), 0, 0);
    }
}

}  // namespace

void compare_clocks_at_begin() {
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Name mine{};
    trace::machine_clock().copy(mine.data(), mine.size() - 1);
    std::vector<Name> names(static_cast<std::size_t>(ranks));
    if (PMPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, names.data(),
                       static_cast<int>(mine.size()), MPI_CHAR, MPI_COMM_WORLD) != MPI_SUCCESS)
        return;
    first_ranks = first_of_other_clocks(names);
    if (first_ranks.empty() || PMPI_Comm_dup(MPI_COMM_WORLD, &between_clocks) != MPI_SUCCESS) return;
    compare();
}

void compare_clocks_at_end() {
    if (between_clocks == MPI_COMM_NULL) return;
    compare();
    PMPI_Comm_free(&between_clocks);
}

}  // namespace offpath::traced
