// Parcel: a send or a receive that the device may have a part in. It belongs to a request of the host's MPI,
// which the user holds: of the header that is sent, or of the receive that gets a message or a header. It is
// done when that request is, and what a header announced has been moved.
//
// Life: acquire -> registered under its handle (or waited for by its maker) -> complete -> finish, which
// gives the handle back -> release. A parcel nobody waits for any more (request freed, buffered send) is
// finished by poll().
//
// A receive of the user's buffer is in one of two forms. Direct: the host's receive is the user's own.
// Landing: it goes to memory of ours, because the device may write the user's buffer meanwhile, because the
// bytes have to be unpacked, or because a header would not fit, or could not be told from a message that was
// cut off to its size. So the host's MPI never cuts a header off. Early: the device has been asked for the
// message under its number before anything of it has come, so that it moves while the receiver computes.
//
// Threads: under the lock (lock.h).
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>

#include "datatypes.h"
#include "header.h"
#include "pairs.h"
#include "staging.h"

namespace offpath::mpi::p2p {

struct Watch;

struct Parcel {
    bool receives = false;
    bool wild = false;      // a wildcard, and not known to be matched
    bool large = false;     // a receive with room for what the device carries
    bool early = false;     // `mail` was asked for by number
    bool counted = false;   // in the communicator's numbers
    bool numbered = false;  // `number` is certain
    bool host_done = false;
    bool complete = false;  // status and error are final
    bool forsaken = false;  // nobody holds its handle
    bool direct = false;
    bool registered = false;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    MPI_Request handle = MPI_REQUEST_NULL;
    int peer = 0, tag = 0;  // in the communicator; of receives as posted, then as matched
    std::uint32_t number = 0;

    // The user's.
    void* buffer = nullptr;
    std::size_t count = 0;
    std::size_t capacity = 0;  // bytes
    TypeUse use;

    // The device's part, and the host's second message in its place.
    offpath_request_h mail = nullptr;
    offpath_message_key_t key{};
    MPI_Request payload = MPI_REQUEST_NULL;
    std::size_t announced = 0;  // bytes that the header told of
    bool by_header = false;     // what it receives was announced by a header

    Watch* watch = nullptr;  // watcher.h
    bool landed = false;     // what a header announced comes to `landing`

    std::array<char, short_landing_bytes> own{};  // the header that is sent, or a short receive's landing
    StagingBlock staging;                         // packed bytes for the device
    char* landing = nullptr;                      // where the host's receive goes; capacity below
    std::size_t landing_bytes = 0;

    // How it is waited for (waits.h).
    bool watched = false;
    bool by_host = false;  // a send without the device's part, or a receive that is expected to be of one
    bool agreed = false;   // a receive whose message has no header, as the sender has promised
    bool beneath = false;  // a receive whose buffer holds another's header
    bool any_source_or_tag = false;  // as posted
    bool judged = false;             // found to be computed beside, and told
    std::uint64_t posted_ns = 0, outside_ns = 0;
    std::uint64_t left_ns = 0;           // when the program got on; 0: it is in a call that looks at it
    std::uint64_t left_in_calls_ns = 0;  // in_calls_ns then

    std::uint64_t asked_ns = 0;  // a send: when it was seen to wait, or its storing was asked for

    MPI_Status status{};
    int error = MPI_SUCCESS;
    bool error_is_ours = false;  // the error handler has not been called for it
    bool error_is_told = false;  // the host's handler has been, and `handle` still has the error

    Parcel* next = nullptr;  // free, or of the same bucket
    std::size_t attended_at = 0;
    bool attended = false;

    void reset();
};

Parcel& acquire_parcel(Team& team, Pairs& pairs, bool receives);
void release_parcel(Parcel& parcel);

// The table by handle.
void register_parcel(Parcel& parcel);
void forget_parcel(Parcel& parcel);
Parcel* find_parcel(MPI_Request request);

// Parcels that need this process to move on, whatever it waits for: receives with room for large messages,
// and what is forsaken. As long as there is one, no call may sit in the host's MPI.
void attend(Parcel& parcel);
void disregard(Parcel& parcel);
Parcel* next_attended();
// Whether all of them are receives that the present call waits for, and are expected from the host's MPI.
bool all_attended_are_the_hosts();
bool any_forsaken_send();
bool any_forsaken(const Team& team);

// Memory of ours for the host's receives.
char* acquire_landing(std::size_t bytes);
void release_landing(char* landing, std::size_t bytes);

void close_parcels();

}  // namespace offpath::mpi::p2p
