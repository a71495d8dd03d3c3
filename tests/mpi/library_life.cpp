// A library that begins MPI in its constructor, before main, or ends it in its destructor, after main, or
// both (LIFE).
#include "library_life.h"

#include <cstdlib>
#include <string>

#include "check.h"

namespace {

std::string life() {
    const char* const value = std::getenv("LIFE");
    return value == nullptr ? "" : value;
}

__attribute__((constructor)) void begin() {
    if (life().starts_with("library")) MPI_Init(nullptr, nullptr);
}

__attribute__((destructor)) void end() {
    if (!life().ends_with("library")) return;
    check::that(exchange(3), "the exchange of the destructor");
    if (check::finish() != 0) std::_Exit(1);
}

}  // namespace

bool exchange(int seed) {
    constexpr std::size_t count = 100000;
    const std::vector<int> mine = check::pattern(count, seed);
    std::vector<int> all(count * static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD))),
        expected(all.size());
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine.data(), count, MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    PMPI_Allgather(mine.data(), count, MPI_INT, expected.data(), count, MPI_INT, MPI_COMM_WORLD);
    return all == expected;
}
