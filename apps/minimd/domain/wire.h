// MPI's datatypes for the numbers that ranks send, and the tags of their messages.
#pragma once

#include <mpi.h>

namespace minimd {

template <typename T>
MPI_Datatype mpi_type();
template <>
inline MPI_Datatype mpi_type<float>() {
    return MPI_FLOAT;
}
template <>
inline MPI_Datatype mpi_type<double>() {
    return MPI_DOUBLE;
}

// The tags tell messages of different kinds between two ranks apart.
enum Tag : int {
    tag_migration = 100,
    tag_migration_follow = 110,
    tag_ghost_counts = 120,
    tag_ghosts,
    tag_update,
    tag_reverse,
    // Messages between a host and its device.
    tag_command,
    tag_device_numbers,
    tag_device_reals
};

}  // namespace minimd
