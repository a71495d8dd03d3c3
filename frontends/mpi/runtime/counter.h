// Counters of this process: what the summary at MPI_Finalize adds up over all ranks. Tools read them while
// the program runs, as performance variables of MPI_T (tools/).
//
// Each part lists its own beside its summary. Threads: `read` may be called by any, also before MPI_Init,
// where it gives 0.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::mpi {

enum class Unit : std::uint8_t { events, bytes, nanoseconds };

struct Counter {
    std::string name;  // without "offpath_"
    std::string meaning;
    Unit unit = Unit::events;
    std::uint64_t (*read)() = nullptr;  // never decreases
};

}  // namespace offpath::mpi
