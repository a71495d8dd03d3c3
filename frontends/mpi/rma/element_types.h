// The elements of MPI's updates as the device knows them. Pure look-up; any thread.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstddef>

#include "shapes.h"

namespace offpath::mpi {

// An unsigned integer of that size; false: there is none.
bool integer_of(std::size_t bytes, offpath_type_t& type);
// What MPI_Compare_and_swap takes: predefined integers, logicals, characters and bytes.
bool may_be_swapped(MPI_Datatype type);

// MPI_SUCCESS, or the error: a type of several predefined ones, an operation that MPI does not define for it
// or that the device cannot do. `whole`: pairs go with their gaps.
int find_update(const Shape& target, MPI_Op op, offpath_type_t& type, offpath_reduction_t& reduction,
                bool& whole);

}  // namespace offpath::mpi
