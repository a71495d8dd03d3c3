// MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Session_init.
//
// The front end ends in a callback of MPI_COMM_SELF, which PMPI_Finalize calls before it takes anything down.
// The callbacks come in the reverse order of their attributes, and ours is the first one. So those of the
// program come before it, and may still use whatever a device has to do with.
#include <mpi.h>
#include <offpath/types.h>

#include "bypass.h"
#include "devices/devices.h"
#include "profilers.h"
#include "runtime/kept_components.h"
#include "runtime/regions.h"
#include "runtime/runtime.h"

namespace {

int end(MPI_Comm, int, void*, void*) {
    offpath::mpi::close_regions(offpath::mpi::devices::left_messages);
    offpath::mpi::detach();
    offpath::mpi::keep_components();
    return MPI_SUCCESS;
}

void begin() {
    offpath::mpi::note_init();
    int key = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, nullptr);
    PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    PMPI_Comm_free_keyval(&key);
    offpath::mpi::attach();
    const offpath::mpi::Runtime& r = offpath::mpi::runtime();
    const std::string why = offpath::mpi::why_profilers_are_not_first();
    if (!why.empty() && r.rank == 0 && r.size > 1) offpath::mpi::warn(offpath::Code::not_supported, why);
    offpath::mpi::open_regions();
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Init(int* argc, char*** argv) {
    void* const profiler = offpath::mpi::profiler_passed_by("MPI_Init", __builtin_return_address(0));
    if (profiler != nullptr) return reinterpret_cast<decltype(&MPI_Init)>(profiler)(argc, argv);
    const int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS) begin();
    return result;
}

OFFPATH_API int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    void* const profiler = offpath::mpi::profiler_passed_by("MPI_Init_thread", __builtin_return_address(0));
    if (profiler != nullptr)
        return reinterpret_cast<decltype(&MPI_Init_thread)>(profiler)(argc, argv, required, provided);
    const int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS) begin();
    return result;
}

OFFPATH_API int MPI_Finalize() {
    return PMPI_Finalize();
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
OFFPATH_API int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
    const int result = PMPI_Session_init(info, handler, session);
    if (result == MPI_SUCCESS) offpath::mpi::note_session();
    return result;
}
#endif

}  // extern "C"
