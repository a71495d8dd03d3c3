// MPI_Alloc_mem and MPI_Free_mem. Allocations of a few pages or more are memory that the device maps too.
// This saves a copy on each side whenever the device uses the memory. Like memory of the host's libraries, it
// stays readable after MPI_Finalize. Thread-safe.
#include <mpi.h>
#include <offpath/offpath.h>

#include <mutex>
#include <unordered_map>

#include "communicators/counters.h"
#include "rma/exposed_memory.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

constexpr MPI_Aint least_mapped_bytes = MPI_Aint{64} * 1024;

std::mutex allocated_mutex;
std::unordered_map<void*, std::size_t> mapped;  // address to size

// Returns the size of offpath's memory at this address, or 0 if the memory is not offpath's.
std::size_t take_mapped(void* address) {
    const std::lock_guard lock(allocated_mutex);
    const auto found = mapped.find(address);
    if (found == mapped.end()) return 0;
    const std::size_t bytes = found->second;
    mapped.erase(found);
    return bytes;
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    void* address = nullptr;
    if (active() && size >= least_mapped_bytes && baseptr != nullptr &&
        offpath_mem_alloc(runtime().context, static_cast<std::size_t>(size), &address) == OFFPATH_OK) {
        offpath_mem_keep(runtime().context, address);
        count_allocated(address, static_cast<std::size_t>(size));
        const std::lock_guard lock(allocated_mutex);
        mapped.emplace(address, static_cast<std::size_t>(size));
        *static_cast<void**>(baseptr) = address;
        return MPI_SUCCESS;
    }
    return PMPI_Alloc_mem(size, info, baseptr);
}

OFFPATH_API int MPI_Free_mem(void* base) {
    const std::size_t bytes = base != nullptr ? take_mapped(base) : 0;
    if (bytes == 0) return PMPI_Free_mem(base);
    // After MPI_Finalize the memory stays until the process ends.
    if (active()) free_memory(base, bytes);
    return MPI_SUCCESS;
}

}  // extern "C"

}  // namespace offpath::mpi
