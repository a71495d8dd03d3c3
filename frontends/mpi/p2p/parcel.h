// Parcel: a send or a receive in which the device may take part. It belongs to a request of the host's MPI
// that the user holds: that of the header sent, or that of the receive of a message or a header. It is done
// when that request is done and the announced message has been moved.
//
// Life: acquire -> registered under its handle (or waited for by its maker) -> complete -> finish, which
// returns the handle -> release. poll() finishes parcels that no caller waits for any more (request freed,
// buffered send).
//
// A receive has one of two forms. Direct: the host's MPI receives into the user's buffer. Landing: it
// receives into our memory. That is needed if the device may write the user's buffer meanwhile, if the bytes
// must be unpacked, or if a header would not fit or could not be told from a truncated message of its size.
// The host's MPI therefore never truncates a header. In addition a receive may be early: the device was asked
// for the message by its number before any of it arrived, so that it moves while the receiver computes.
//
// Threads: under the lock (lock.h).
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>

#include "communicator_state.h"
#include "datatypes/datatypes.h"
#include "header.h"
#include "runtime/staging.h"

namespace offpath::mpi::p2p {

struct HeaderWatch;
struct ShortReceive;

struct Parcel {
    bool receives = false;
    bool wild = false;      // has a wildcard, and is not known to be matched
    bool large = false;     // a receive with room for what the device carries
    bool early = false;     // `keyed_message` was asked for by number
    bool counted = false;   // included in the communicator's numbers
    bool numbered = false;  // `number` is certain
    bool host_done = false;
    bool complete = false;  // status and error are final
    bool forsaken = false;  // its handle has no holder
    bool direct = false;
    bool registered = false;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    MPI_Request handle = MPI_REQUEST_NULL;
    int peer = 0, tag = 0;  // in the communicator; of receives as posted, then as matched
    std::uint32_t number = 0;

    // The user's arguments.
    void* buffer = nullptr;
    std::size_t count = 0;
    std::size_t capacity = 0;  // bytes
    TypeUse use;

    // The device's part, and the second message of the host's MPI that may replace it.
    offpath_request_h keyed_message = nullptr;
    offpath_message_key_t key{};
    MPI_Request payload = MPI_REQUEST_NULL;
    std::size_t announced = 0;  // bytes announced by the header
    bool by_header = false;     // what it receives was announced by a header

    HeaderWatch* watch = nullptr;  // header_watcher.h
    bool landed = false;           // the announced message goes to `landing`

    std::array<char, short_landing_bytes> own{};  // the header that is sent, or a short receive's landing
    ShortReceive* short_receive = nullptr;  // it was one, whose memory is its landing (short_receives.h)
    StagingBlock staging;                   // packed bytes for the device
    char* landing = nullptr;                // where the host's receive goes; capacity below
    std::size_t landing_bytes = 0;

    // How it is waited for (waited_messages.h).
    bool watched = false;
    bool by_host = false;  // a send without the device's part, or a receive that is expected to be of one
    bool moved_by_host = false;      // counted as such (waited_messages.h)
    bool agreed = false;             // a receive whose message has no header, as the sender has promised
    bool beneath = false;            // a receive whose buffer holds the header of another receive
    bool any_source_or_tag = false;  // as posted
    bool judged = false;             // the program was seen to compute beside it, and this was told
    std::uint64_t posted_ns = 0, outside_ns = 0;
    std::uint64_t left_ns = 0;           // when the program got on; 0: it is in a call that looks at it
    std::uint64_t left_in_calls_ns = 0;  // in_calls_ns then

    std::uint64_t lost_ns = 0;   // a receive: since when it waits for an offer (rescue.h); 0: it does not
    std::uint64_t asked_ns = 0;  // a send: when it was seen to wait, or its storing was asked for

    MPI_Status status{};
    int error = MPI_SUCCESS;
    bool error_is_ours = false;  // its error handler has not been called
    bool error_is_told = false;  // the host's handler has been, and `handle` still has the error

    Parcel* next = nullptr;  // free, or in the same bucket
    std::size_t attended_at = 0;
    bool attended = false;

    void reset();
};

Parcel& acquire_parcel(Team& team, Pairs& pairs, bool receives);
void release_parcel(Parcel& parcel);

// The table of parcels by handle.
void register_parcel(Parcel& parcel);
void forget_parcel(Parcel& parcel);
// A short receive becomes a parcel by it.
Parcel* find_parcel(MPI_Request request);
// Null for short receives, too.
Parcel* find_registered(MPI_Request request);

// Attended parcels need progress by this process, whatever it waits for: receives with room for large
// messages, sends that the device has, as it may lose them, and forsaken parcels. While there is one, no call
// may block in the host's MPI.
void attend(Parcel& parcel);
void disregard(Parcel& parcel);
Parcel* next_attended();
// Whether all of them are receives that the present call waits for and that are expected from the host's MPI.
bool all_attended_are_the_hosts();
bool any_forsaken_send();
bool any_forsaken(const Team& team);

// Our memory for receives of the host's MPI.
char* acquire_landing(std::size_t bytes);
void release_landing(char* landing, std::size_t bytes);

void close_parcels();

}  // namespace offpath::mpi::p2p
