// The MPI's predefined objects that are symbols, as Open MPI's are; generate.py makes the table. An MPI whose
// handles are numbers has none.
#pragma once

#include <span>

namespace offpath::region_mpi {

struct Predefined {
    const char* name;
    const void* address;
};
extern const std::span<const Predefined> predefined;

}  // namespace offpath::region_mpi
