// One operation on a window of ours: translates MPI's arguments into calls of the device. Threads: any.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "windows.h"

namespace offpath::mpi {

struct Buffer {
    void* address = nullptr;
    Elements elements;  // no shape: there is none

    // Whether the bytes need no packing: they are contiguous in the host's memory, or there are none.
    bool is_plain() const;
};

// Null stays null.
inline char* offset_by(const void* address, std::size_t bytes) {
    return address == nullptr ? nullptr : static_cast<char*>(const_cast<void*>(address)) + bytes;
}

struct OneSidedOperation {
    enum class Kind : std::uint8_t { put, get, accumulate, get_accumulate, compare_swap } kind = Kind::put;
    int target = 0;
    Buffer origin, result;
    Elements at;
    std::uint64_t offset = 0;  // in the target's memory
    offpath_type_t type{};     // of updates
    offpath_reduction_t reduction{};
    // The same as MPI knows it. No `basic`: the elements are bytes.
    MPI_Datatype basic = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    const void* compare = nullptr;  // of MPI_Compare_and_swap
};

// Checks the user's description of the target. On MPI_SUCCESS the operation's target, `at` and `offset` are
// set; otherwise it returns the error. `whole` as in Elements.
int set_target(Window& window, OneSidedOperation& operation, const char* call, int rank, MPI_Aint disp,
               int count, MPI_Datatype type, bool whole);
// Sets the buffer of an origin or a result.
int set_buffer(Buffer& buffer, const void* address, int count, MPI_Datatype type, bool whole);

// Starts the operation. With `request`, that becomes the user's request; otherwise a flush of the target
// completes it. Calls the error handler and returns what the MPI call returns.
int start(Window& window, OneSidedOperation&& operation, const char* call, MPI_Request* request);

// Makes a request that is already done.
int done_request(Window& window, const char* call, MPI_Request* request);

// Whether `rank` may be accessed now.
bool in_epoch(Window& window, int rank);

}  // namespace offpath::mpi
