// A program that is made with AddressSanitizer, while the front end is loaded before the sanitizer's run
// time.
#include "check.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdlib>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int me = check::rank_of(MPI_COMM_WORLD), ranks = check::size_of(MPI_COMM_WORLD);
    constexpr std::size_t ints = 10000;
    const std::vector<int> mine(ints, me + 1);
    // The sanitizer knows the ends of this block only if its own malloc made it.
    auto* const all = static_cast<int*>(std::malloc(sizeof(int) * ints * static_cast<std::size_t>(ranks)));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine.data(), ints, MPI_INT, all, ints, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < ranks; ++rank)
        check::that(std::count(all + ints * static_cast<std::size_t>(rank),
                               all + ints * static_cast<std::size_t>(rank + 1), rank + 1) == ints,
                    "the part of rank {}", rank);
    check::that(__asan_address_is_poisoned(all + ints * static_cast<std::size_t>(ranks)) != 0,
                "the memory behind a block may be used");
    std::free(all);
    return check::finish();
}
