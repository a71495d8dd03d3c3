#include "openmp/mpi/errors.h"

#include "openmp/mpi/communicators.h"

#include <cstdio>
#include <cstdlib>

// The target host has it.
extern "C" __attribute__((weak)) void offpath_target_flush_output();

namespace offpath::region_mpi {

void check(offpath_status_t status, const char* what) {
    if (status == OFFPATH_OK) return;
    throw MpiError{status == OFFPATH_ERR_TRUNCATED ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER,
                   std::string(what) + ": " + offpath_status_string(status)};
}

namespace {

bool returns(MPI_Comm handle) {
    if (!attached()) return false;
    try {
        return communicator_of(handle).errors_return;
    } catch (const MpiError&) {
        return communicator_of(MPI_COMM_WORLD).errors_return;
    }
}

}  // namespace

void die() {
    std::fflush(nullptr);
    if (offpath_target_flush_output != nullptr) offpath_target_flush_output();
    std::abort();
}

int report(const char* call, MPI_Comm handle, const MpiError& error) {
    if (returns(handle)) return error.code;
    std::fprintf(stderr, "%s in a target region: %s [OFP-0404]\n", call, error.text.c_str());
    die();
}

}  // namespace offpath::region_mpi

// Where calls.c sends every call that has no definition here.
extern "C" int offpath_region_mpi_unsupported(const char* call) {
    return offpath::region_mpi::report(
        call, MPI_COMM_WORLD, {MPI_ERR_UNSUPPORTED_OPERATION, "this MPI call is not supported on a device"});
}
