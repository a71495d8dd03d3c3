// How MPI calls in target regions report errors. A call throws MpiError inside; in_call() turns it into what
// the communicator's error handler says: the end of the region and its process, or the call's result.
// Threads: any.
#pragma once

#include <mpi.h>
#include <offpath/types.h>

#include <exception>
#include <string>

// A call that regions make.
#define OFFPATH_EXPORT extern "C" __attribute__((visibility("default")))

namespace offpath::region_mpi {

struct Communicator;
Communicator& communicator_of(MPI_Comm handle);

struct MpiError {
    int code = MPI_ERR_OTHER;
    std::string text;
};

// Throws for an error of the device. TRUNCATED becomes MPI_ERR_TRUNCATE.
void check(offpath_status_t status, const char* what);

// Ends the region's process, after a line on standard error, or returns error.code: as the handler of
// `handle` says, or that of the world where there is no such communicator.
int report(const char* call, MPI_Comm handle, const MpiError& error);

// Ends the process, after what it has printed was sent to the program.
[[noreturn]] void die();

template <typename Body>
int in_call(const char* call, MPI_Comm handle, Body&& body) {
    try {
        body(communicator_of(handle));
        return MPI_SUCCESS;
    } catch (const MpiError& error) {
        return report(call, handle, error);
    } catch (const std::exception& error) {
        return report(call, handle, {MPI_ERR_INTERN, error.what()});
    }
}

}  // namespace offpath::region_mpi
