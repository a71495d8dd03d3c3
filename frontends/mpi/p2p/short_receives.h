// Short receives: non-blocking receives that have less room than a message for the device, and name source
// and tag. Most of them get a message of the host's MPI that needs nothing more. They are therefore a small
// record beside the host's request, and not a parcel (parcel.h).
//
// Life: start -> in a table by handle -> taken out by a call that completes its request in the host's MPI ->
// end_if_plain. If what came is a header or does not fit, or if any other call meets the request, the receive
// becomes a parcel and goes on as one.
//
// Not used with MPI_THREAD_MULTIPLE. There is one thread at a time, so no lock is needed.
#pragma once

#include <mpi.h>

#include <array>
#include <cstring>

#include "communicator_state.h"
#include "header.h"
#include "parcel_progress.h"
#include "received_bytes.h"

namespace offpath::mpi::p2p {

struct alignas(64) ShortReceive {
    MPI_Request handle = MPI_REQUEST_NULL;
    ShortReceive* next = nullptr;  // free, or in the same bucket
    void* buffer = nullptr;
    std::size_t capacity = 0;  // bytes
    Layout* layout = nullptr;  // held; null: contiguous
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    int peer = 0, tag = 0;
    // Where the host's MPI receives if the buffer has room for a header at most.
    std::array<char, short_landing_bytes> landing;

    bool lands() const { return capacity <= header_bytes; }
};
static_assert(sizeof(MPI_Request) > 8 || sizeof(ShortReceive) == 128);

inline bool short_receives_are_used = false;  // written in MPI_Init
inline std::size_t short_receive_count = 0;   // in the table

// Whether a receive of `capacity` bytes becomes a short one. A receive that an older one with a wildcard may
// precede, or that a probe may have served, does not.
bool is_short(const Arguments& arguments, std::size_t capacity, const Pairs& pairs);
// Posts it with the host's MPI. Returns what that returned.
int start_short(const Arguments& arguments, std::size_t capacity, Layout* layout, Team& team, Pairs& pairs,
                MPI_Request* request);

// Takes the receive out of the table, before a call of the host's MPI that may complete it: the host's MPI
// may then give its handle to another request. Null: `request` is none of these.
ShortReceive* take_short(MPI_Request request);
// The call has not completed it.
void put_back(ShortReceive& receive);

// The host's MPI has completed the request without error. True: so is the receive, and its record is free.
// False: it must become a parcel. `any_gpu`: whether its buffer may be in GPU memory.
bool end_if_plain(ShortReceive& receive, const MPI_Status& status, bool any_gpu);
// `handle`: null if the host's MPI has completed the request. The record is given up.
Parcel& become_parcel(ShortReceive& receive, MPI_Request handle);
void release_short(ShortReceive& receive);

// Waiting inside the host's MPI for requests among which are short receives, and no other parcels. Must not
// hold the lock. False: such a wait is not possible, and nothing was done. `result`: what the MPI call
// returns.
bool wait_for_short(MPI_Request* request, MPI_Status* status, int* result);
bool wait_for_all_short(int count, MPI_Request* requests, MPI_Status* statuses, int* result);

}  // namespace offpath::mpi::p2p
