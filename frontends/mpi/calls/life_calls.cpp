// MPI_Init, MPI_Init_thread, MPI_Finalize.
#include <mpi.h>
#include <offpath/types.h>

#include "devices/devices.h"
#include "runtime/kept_components.h"
#include "runtime/regions.h"
#include "runtime/runtime.h"

namespace {

void begin() {
    offpath::mpi::attach();
    offpath::mpi::open_regions();
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Init(int* argc, char*** argv) {
    const int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS) begin();
    return result;
}

OFFPATH_API int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS) begin();
    return result;
}

OFFPATH_API int MPI_Finalize() {
    offpath::mpi::close_regions(offpath::mpi::devices::left_messages);
    offpath::mpi::detach();
    offpath::mpi::keep_components();
    return PMPI_Finalize();
}

}  // extern "C"
