// MPI in target regions: what the OpenMP plug-in, which knows the device of the regions, gets from the front
// end, which knows the ranks. The plug-in finds offpath_mpi_serve_regions by its name. It needs no mpi.h.
//
// The devices of all ranks form a job of their own, together with the hosts: rank r's host is rank 2r of that
// job and its device rank 2r + 1 (mixed_teams.h). Each host attaches to it by a second context, so that hosts
// and devices can exchange messages. Programs without MPI in their regions have no such job.
//
// Threads: MPI_Init's and MPI_Finalize's; offpath_mpi_serve_regions comes before MPI_Init.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>

namespace offpath::mpi {

struct RegionsMpi {
    // Whether the device can begin. Local.
    bool (*ready)() = nullptr;
    // In MPI_Init, if the devices of all ranks are ready: the device begins to join a job as one of its
    // ranks. It takes part in the exchanges by which a job begins. Local; false: it cannot.
    bool (*begin)(std::uint32_t rank, std::uint32_t size) = nullptr;
    // The next exchange: waits for the device's part, of `bytes` bytes. False: the device has given up.
    bool (*take)(void* mine, std::size_t bytes) = nullptr;
    // After a take() that was fine: the parts of all ranks of the job. Null: the exchange has failed.
    void (*give)(const void* all, std::size_t bytes) = nullptr;
    // After the exchanges: waits until the device has joined. False: it has given up.
    bool (*joined)() = nullptr;
    // In MPI_Finalize, on all ranks whose devices have joined.
    void (*end)() = nullptr;
};

// In MPI_Init and MPI_Finalize. `left`: progresses the messages between this host and devices, and returns
// how many are not complete.
void open_regions();
void close_regions(std::size_t (*left)());

// This process's attachment to the job of hosts and devices; null: there is none.
offpath_context_h context_with_devices();
// Whether the program has regions on a device that call MPI.
bool has_regions();

}  // namespace offpath::mpi

// The regions of this process call MPI. `regions` is a constant.
extern "C" OFFPATH_API void offpath_mpi_serve_regions(const offpath::mpi::RegionsMpi* regions);
