// MPI's datatypes and reductions as the device knows them: C's predefined ones, and those that regions derive
// from them (derived_types.cpp). Threads: any.
#pragma once

#include "openmp/mpi/layout.h"

#include <mpi.h>
#include <offpath/collectives.h>

#include <cstddef>
#include <memory>

namespace offpath::region_mpi {

struct Type {
    std::size_t bytes = 0;     // of one element, without gaps
    offpath_type_t element{};  // for reductions; 0: there are none
    bool plain = true;         // an array is exactly its bytes
    bool committed = true;
    std::shared_ptr<const Layout> layout;
};

// Throws MpiError: MPI_ERR_TYPE, and MPI_ERR_OP.
Type type_of(MPI_Datatype handle);
offpath_reduction_t reduction_of(MPI_Op handle);

// The type for a message. Throws MpiError also for types that are not committed.
Type type_of_message(MPI_Datatype handle);
std::size_t elements(int count);

// The bytes of `count` elements at a call that takes plain types only. Throws MpiError: MPI_ERR_COUNT if it
// is negative, MPI_ERR_TYPE if the type has gaps.
std::size_t bytes_of(int count, MPI_Datatype handle);

// A type that a region has derived; null: it is none.
std::shared_ptr<const Type> derived_type(MPI_Datatype handle);

}  // namespace offpath::region_mpi
