// MPI_Alloc_mem and MPI_Free_mem: memory of some pages comes from what the device maps too, which saves a
// copy on each side whenever it takes part in an offloaded operation. Thread-safe.
#include <mpi.h>
#include <offpath/offpath.h>

#include <mutex>
#include <unordered_set>

#include "runtime.h"

using namespace offpath::mpi;

namespace {

constexpr MPI_Aint least_mapped_bytes = MPI_Aint{64} * 1024;

std::mutex mutex;
std::unordered_set<void*> mapped;

bool take(void* address) {
    const std::lock_guard lock(mutex);
    return mapped.erase(address) == 1;
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    void* address = nullptr;
    if (active() && size >= least_mapped_bytes && baseptr != nullptr &&
        offpath_mem_alloc(runtime().context, static_cast<std::size_t>(size), &address) == OFFPATH_OK) {
        const std::lock_guard lock(mutex);
        mapped.insert(address);
        *static_cast<void**>(baseptr) = address;
        return MPI_SUCCESS;
    }
    return PMPI_Alloc_mem(size, info, baseptr);
}

OFFPATH_API int MPI_Free_mem(void* base) {
    if (base == nullptr || !take(base)) return PMPI_Free_mem(base);
    // Past MPI_Finalize the memory has ended with the attachment.
    if (active()) offpath_mem_free(runtime().context, base);
    return MPI_SUCCESS;
}

}  // extern "C"
