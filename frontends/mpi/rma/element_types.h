// Maps the elements of MPI's updates to the device's types. Pure look-up; any thread.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstddef>

#include "datatypes/type_shapes.h"

namespace offpath::mpi {

// The unsigned integer of that size; false: there is none.
bool integer_of(std::size_t bytes, offpath_type_t& type);
// Whether MPI_Compare_and_swap accepts the type: predefined integers, logicals, characters and bytes.
bool may_be_swapped(MPI_Datatype type);

// Returns MPI_SUCCESS or the error: the type consists of several predefined ones, or MPI does not define the
// operation for it, or the device does not support it. `whole`: pairs are transferred with their gaps.
int find_update(const Shape& target, MPI_Op op, offpath_type_t& type, offpath_reduction_t& reduction,
                bool& whole);

}  // namespace offpath::mpi
