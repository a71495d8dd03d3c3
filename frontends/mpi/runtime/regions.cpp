#include "regions.h"

#include <mpi.h>

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "mixed_teams.h"
#include "own_communicators.h"
#include "runtime.h"

namespace offpath::mpi {
namespace {

const RegionsMpi* served = nullptr;
offpath_context_h device_context = nullptr;
MPI_Comm between_begin_and_end = MPI_COMM_NULL;

bool all_fine(bool mine) {
    int fine = mine ? 1 : 0;
    const int result = PMPI_Allreduce(MPI_IN_PLACE, &fine, 1, MPI_INT, MPI_MIN, between_begin_and_end);
    return result == MPI_SUCCESS && fine != 0;
}

// An exchange of the job: each process contributes its own part and that of its device.
int allgather_with_devices(void* user, const void* mine, std::size_t bytes, void* all) {
    const int size = *static_cast<const int*>(user);
    std::vector<std::byte> parts(2 * bytes);
    std::memcpy(parts.data(), mine, bytes);
    const bool fine = served->take(parts.data() + bytes, bytes);
    if (!all_fine(fine)) {
        if (fine) served->give(nullptr, 0);
        return 1;
    }
    const int count = static_cast<int>(parts.size());
    const int result =
        PMPI_Allgather(parts.data(), count, MPI_BYTE, all, count, MPI_BYTE, between_begin_and_end);
    served->give(result == MPI_SUCCESS ? all : nullptr, parts.size() * static_cast<std::size_t>(size));
    return result == MPI_SUCCESS ? 0 : 1;
}

// Collective over the world, like the exchanges.
bool join(int rank, int size) {
    const auto ranks = static_cast<std::uint32_t>(2 * size);
    if (!all_fine(served->begin(
            mixed_teams::member(static_cast<std::uint32_t>(rank), mixed_teams::End::device), ranks)))
        return false;
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = OFFPATH_THREADS_MULTIPLE;
    params.allgather = allgather_with_devices;
    params.allgather_user = &size;
    params.rank = mixed_teams::member(static_cast<std::uint32_t>(rank), mixed_teams::End::host);
    params.size = ranks;
    params.local_rank = params.rank;
    const bool mine = offpath_init(&params, &device_context) == OFFPATH_OK;
    const bool devices = served->joined();
    if (all_fine(mine && devices)) return true;
    if (mine) offpath_finalize(device_context);
    device_context = nullptr;
    return false;
}

// Its end would wait for ever for a message that never comes.
void leave(std::size_t (*left)()) {
    constexpr int patience_ms = 1000;
    for (int waited = 0; left() > 0 && waited < patience_ms; ++waited)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const std::size_t count = left(); count > 0) {
        warn(Code::unfinished,
             fmt::format("rank {}: MPI_Finalize: {} messages between this host and devices are not complete",
                         runtime().rank, count));
    } else {
        offpath_finalize(device_context);
    }
    device_context = nullptr;
}

}  // namespace

void open_regions() {
    const int ready = served != nullptr && served->ready() ? 1 : 0;
    int all_ready = 0;
    PMPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all_ready == 0) return;
    int rank = 0;
    int size = 1;
    {
        const FirstIdentifiersKept kept;
        between_begin_and_end = own_communicator(MPI_COMM_WORLD);
    }
    PMPI_Comm_rank(between_begin_and_end, &rank);
    PMPI_Comm_size(between_begin_and_end, &size);
    if (!join(rank, size)) PMPI_Comm_free(&between_begin_and_end);
}

void close_regions(std::size_t (*left)()) {
    if (device_context == nullptr) return;
    // The regions of all ranks have ended, except those that are left alone.
    PMPI_Barrier(between_begin_and_end);
    leave(left);
    served->end();
    // No device ends while a rank is still leaving.
    PMPI_Barrier(between_begin_and_end);
    PMPI_Comm_free(&between_begin_and_end);
}

offpath_context_h context_with_devices() {
    return device_context;
}

bool has_regions() {
    return served != nullptr;
}

}  // namespace offpath::mpi

extern "C" OFFPATH_API void offpath_mpi_serve_regions(const offpath::mpi::RegionsMpi* regions) {
    offpath::mpi::served = regions;
}
