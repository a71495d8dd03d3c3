// Moving: how parcels are started, get on and end. All but what says otherwise is called under the lock.
#pragma once

#include <mpi.h>

#include "lock.h"
#include "parcel.h"
#include "state.h"

namespace offpath::mpi::p2p {

// What every call has; `buffer` is read or written.
struct Arguments {
    void* buffer;
    int count;
    MPI_Datatype type;
    int peer;
    int tag;
    MPI_Comm comm;
};

enum class Mode : std::uint8_t { standard, synchronous, ready, buffered };

// Starts a send of a message for which goes_with_header holds. MPI_SUCCESS: `parcel` is on its way; else
// nothing was sent, and `ours` says whether the error handler is still to be called.
int start_send(const Arguments& arguments, const TypeUse& use, Mode mode, Team& team, Pairs& pairs,
               Parcel** parcel, bool* ours);
// Starts one that is the host's alone (waits.h), of contiguous bytes or not.
int start_send_by_host(const Arguments& arguments, std::size_t bytes, Mode mode, Team& team, Pairs& pairs,
                       Parcel** parcel);
// The device has no part in a send any more.
void left_device(Parcel& parcel);
// Whether a message to a rank that takes part is announced by a header.
bool goes_with_header(std::size_t bytes);

// Starts a receive that may get a header. Either `parcel` is set, or `request` (of the host's MPI alone).
// `awaited`: the present call returns when it is complete.
int start_receive(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs, bool awaited,
                  Parcel** parcel, MPI_Request* request);
// A receive that the host's MPI has done with, `error` being what it said of it. `landed`: a short landing's
// bytes; null: the user's buffer has them.
Parcel& received_by_host(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs,
                         const MPI_Status& status, const char* landed, int error);
// A receive of a message whose header a probe has taken, and which has been counted. With `with_handle` it
// gets a request.
Parcel& receive_extracted(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs,
                          const Extracted& message, bool with_handle);

// Returns whether the parcel is complete. Does not wait.
bool advance(Parcel& parcel);
// The host's half is done.
void host_is_done(Parcel& parcel, const MPI_Status& status);
// What was received gets from memory of ours to the user's buffer.
void deliver(Parcel& parcel);
// Asks the device for the message of this parcel's key. Where it does not take that, `mail` stays null.
offpath_status_t ask_device(Parcel& parcel, std::size_t room);
// The parcel ends with this error, and somebody says so.
void fail(Parcel& parcel, int error, const char* what, offpath_status_t status);

// Whether a receive that is pending may take a message of this source and tag.
bool wildcard_in_the_way(Pairs& pairs, int source, int tag);

// early.cpp: asks the device for the message that must come, if that is certain.
void try_early(Parcel& parcel);
// No message will come under the number, so the device can forget of it in its own time.
void drop_early(Parcel& parcel);
// Takes back what the device was asked for, and waits until it is. False: a message has met it.
bool withdraw(std::uint32_t source, const offpath_message_key_t& key, offpath_request_h mail);
// Takes the device's part back. False: a message has met it, and it is received. Waits for the device.
bool take_back(Parcel& parcel);
// The device has no part in an early receive any more.
void not_early(Parcel& parcel);
// Receives that name this source and tag wait for the host's MPI alone from here on; those that a message has
// met are waited for.
void settle_early(Pairs& pairs, int source, int tag);
// Nobody holds the parcel's request any more.
void forsake(Parcel& parcel);
// MPI_Cancel: takes the receive back if nothing has matched it. The request is to be completed as always.
void cancel(Parcel& parcel);

// Not under the lock: waits, ends the parcel, and returns what the MPI call returns, the error handler having
// been called. `status` may be MPI_STATUS_IGNORE.
int wait_for(Parcel& parcel, MPI_Status* status);
// Ends a complete parcel likewise; `guard` is released.
int finish(Guard& guard, Parcel& parcel, MPI_Status* status);
// Not under the lock. As PMPI_Wait for a request of the host's MPI alone, looking after parcels meanwhile.
int wait_for_host(MPI_Request* request, MPI_Status* status);

void copy_status(const MPI_Status& from, MPI_Status* to);

inline bool is_exact(int source, int tag) {
    return source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG;
}
std::size_t received_bytes(const MPI_Status& status);

// Whether a message from here, with arguments that look right, is between ranks that take part. Else it is
// the host's in every respect. Not under the lock.
inline bool takes_part(const Arguments& a, Team*& team, Pairs*& pairs) {
    pairs = find_pairs(a.comm, &team);
    return pairs != nullptr && pairs->takes_part(a.peer) && a.count >= 0 && a.type != MPI_DATATYPE_NULL &&
           a.tag >= 0 && a.tag <= largest_tag();
}
// Whether a receive with these arguments may get a header.
inline bool may_get_header(const Arguments& a, Team*& team, Pairs*& pairs) {
    pairs = find_pairs(a.comm, &team);
    return pairs != nullptr && pairs->may_get_header(a.peer) && a.count >= 0 && a.type != MPI_DATATYPE_NULL &&
           (a.tag == MPI_ANY_TAG || (a.tag >= 0 && a.tag <= largest_tag()));
}

// Calls of the host's MPI that do not wait, for Sendrecv and the like. Not under the lock.
int send_now(const Arguments& arguments, Mode mode, MPI_Request* request);
int receive_now(const Arguments& arguments, MPI_Request* request, bool awaited = false);
// Ends a request of either.
int complete(MPI_Request* request, MPI_Status* status);

}  // namespace offpath::mpi::p2p
