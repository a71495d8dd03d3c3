// Moving: starting, progressing and ending parcels. The calls need the lock unless stated otherwise.
#pragma once

#include <mpi.h>

#include "lock.h"
#include "outstanding.h"
#include "parcel.h"
#include "received_bytes.h"

namespace offpath::mpi::p2p {

// The common arguments of all calls; `buffer` is read or written.
struct Arguments {
    void* buffer;
    int count;
    MPI_Datatype type;
    int peer;
    int tag;
    MPI_Comm comm;
};

enum class Mode : std::uint8_t { standard, synchronous, ready, buffered };

// Starts a send of a message for which goes_with_header() holds. MPI_SUCCESS: `parcel` is outstanding.
// Otherwise nothing was sent, and `ours` says whether the error handler must still be called.
int start_send(const Arguments& arguments, const TypeUse& use, Mode mode, Team& team, Pairs& pairs,
               Parcel** parcel, bool* ours);
// Starts a send that uses the host's MPI only (waited_messages.h), of contiguous bytes or not.
int start_send_by_host(const Arguments& arguments, std::size_t bytes, Mode mode, Team& team, Pairs& pairs,
                       Parcel** parcel);
// The device no longer takes part in a send.
void left_device(Parcel& parcel);
// The send to this rank of the world that the device has under this key. Null: it has none.
Parcel* find_device_send(int world_rank, const offpath_message_key_t& key);
// Of the next payload on payload_comm() from here.
int next_payload_tag();
// Whether a message to a participating rank is announced by a header.
bool goes_with_header(std::size_t bytes);

// Starts a receive that may get a header. Sets either `parcel`, or `request` for the host's MPI alone.
// `awaited`: the present call returns when the receive is complete.
int start_receive(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs, bool awaited,
                  Parcel** parcel, MPI_Request* request);
// A receive that the host's MPI has finished with `error`. `landed`: the bytes of a short landing; null: they
// are in the user's buffer.
Parcel& received_by_host(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs,
                         const MPI_Status& status, const char* landed, int error);
// Receives a message whose header a probe has taken; the message has been counted. With `with_handle` the
// receive gets a request.
Parcel& receive_extracted(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs,
                          const Extracted& message, bool with_handle);

// Progresses the parcel without waiting. Returns whether it is complete.
bool advance(Parcel& parcel);
// The host's half is done.
void host_is_done(Parcel& parcel, const MPI_Status& status);
// Copies what was received from our memory to the user's buffer.
void deliver(Parcel& parcel);
// Asks the device for the message with this parcel's key. If the device refuses, `keyed_message` stays null.
offpath_status_t ask_device(Parcel& parcel, std::size_t room);
// Ends the parcel with this error, and reports it.
void fail(Parcel& parcel, int error, const char* what, offpath_status_t status);

// Whether a pending receive may match a message with this source and tag.
bool wildcard_in_the_way(Pairs& pairs, int source, int tag);

// early_receives.cpp: asks the device for the message that must come next, if that is certain.
void try_early(Parcel& parcel);
// No message will come under the number, so the device may forget it at any time.
void drop_early(Parcel& parcel);
// Cancels a request to the device and waits until that is done. False: a message has met it.
bool withdraw(std::uint32_t source, const offpath_message_key_t& key, offpath_request_h keyed_message);
// Cancels the device's part. False: a message has met it and is received. Waits for the device.
bool take_back(Parcel& parcel);
// The device no longer takes part in an early receive.
void not_early(Parcel& parcel);
// From here on, receives with this source and tag use the host's MPI alone. Waits for those that a message
// has met.
void settle_early(Pairs& pairs, int source, int tag);
// The parcel's request has no holder any more.
void forsake(Parcel& parcel);
// MPI_Cancel: cancels the receive if nothing has matched it. The request must still be completed.
void cancel(Parcel& parcel);

// Must not hold the lock. Waits, ends the parcel and calls the error handler. Returns what the MPI call
// returns. `status` may be MPI_STATUS_IGNORE.
int wait_for(Parcel& parcel, MPI_Status* status);
// Ends a complete parcel in the same way; releases `guard`.
int finish(Guard& guard, Parcel& parcel, MPI_Status* status);
// Must not hold the lock. Like PMPI_Wait for a request of the host's MPI alone, but progresses parcels
// meanwhile.
int wait_for_host(MPI_Request* request, MPI_Status* status);

void copy_status(const MPI_Status& from, MPI_Status* to);

inline bool is_exact(int source, int tag) {
    return source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG;
}

// Whether a message from here with plausible arguments is between participating ranks. Otherwise the host's
// MPI handles it entirely. Must not hold the lock.
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

// Calls of the host's MPI that do not wait, for Sendrecv and similar. Must not hold the lock.
int send_now(const Arguments& arguments, Mode mode, MPI_Request* request);
int receive_now(const Arguments& arguments, MPI_Request* request, bool awaited = false);
// Ends a request of either call.
int complete(MPI_Request* request, MPI_Status* status);

}  // namespace offpath::mpi::p2p
