// What the OpenMP plug-in and the library for MPI in target regions say to each other while the library
// attaches to the device. The library is in the target host; the plug-in calls these functions of it, by
// their names, as it calls regions:
//   begin(rank, size)        starts to attach
//   step(record)             waits until the library wants something, and tells it in the record
//   go_on(fine)              what it wanted has been done; 0: it cannot be done
//   names(record)            tells the names of the host's handles that it wants to know, each ended by a
//   zero learn(addresses, count)  the host's addresses of these names, 0 for those that it does not have
//   end()                    detaches, unless operations are outstanding
// Records and addresses lie in device memory. Both sides are little-endian 64-bit machines.
#pragma once

#include <cstdint>

namespace offpath::region_mpi {

enum class Want : std::uint64_t {
    nothing = 0,   // it is attached
    exchange = 1,  // `bytes` bytes at `mine` of every rank, by rank, at `all`
    failed = 2,    // it has given up; the target host has said why
};

struct Step {
    Want want = Want::nothing;
    std::uint64_t bytes = 0, mine = 0, all = 0;
};
struct Names {
    std::uint64_t text = 0, bytes = 0;
};

inline constexpr const char* begin_name = "offpath_region_mpi_begin";
inline constexpr const char* step_name = "offpath_region_mpi_step";
inline constexpr const char* go_on_name = "offpath_region_mpi_go_on";
inline constexpr const char* names_name = "offpath_region_mpi_names";
inline constexpr const char* learn_name = "offpath_region_mpi_learn";
inline constexpr const char* end_name = "offpath_region_mpi_end";

}  // namespace offpath::region_mpi
