// What the calls look at first: whether anything of point-to-point is under way. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace offpath::mpi {
struct Team;
}

namespace offpath::mpi::p2p {

inline std::atomic<std::uint32_t> parcels_registered{0};
inline std::atomic<std::uint32_t> parcels_attended{0};

// Whether a request may be that of a parcel.
inline bool any_registered() {
    return parcels_registered.load(std::memory_order_relaxed) != 0;
}
// Whether a call that waits has to look after parcels instead of sitting in the host's MPI.
inline bool must_attend() {
    return parcels_attended.load(std::memory_order_relaxed) != 0;
}

// Moves a few attended parcels on.
void poll();

// In MPI_Comm_disconnect: until what nobody waits for is done.
void finish_of(const Team& team);
// In MPI_Finalize: until what was sent, and nobody waits for, is on its way.
void finish_all();

// The summary's second line. Collective over the world; printed by rank 0 where there is something to say:
// true.
bool print_summary();

}  // namespace offpath::mpi::p2p
