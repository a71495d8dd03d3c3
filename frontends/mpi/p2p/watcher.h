// Watcher: a thread that asks the device for large messages whose headers have come while the program's
// thread is in a call of the host's MPI, in MPI_Barrier for instance. Only that thread would ask otherwise,
// and their senders would wait for it, perhaps for ever.
//
// The host's MPI writes a header into the memory that the receive gave it. The watcher looks there, and makes
// no MPI call at all. It trusts a header's check alone: bytes that have come in part do not pass it, nor do
// bytes of the program, nor those of an older header, whose number the memory had when the receive was
// posted. When the host's MPI completes the receive, its owner finds the message asked for already.
//
// The payload may go to where the header is: each store by which a header was written brought bytes that the
// check covers, so none of them is outstanding when it passes.
//
// The watcher looks every 50 us at first, then less and less often, down to every millisecond; it sleeps
// while no such receive is pending. With one thread of MPI the context is shared meanwhile
// (offpath/context.h).
//
// Threads: watch and unwatch under the lock (lock.h); a mutex of the watcher's own guards what it shares.
#pragma once

#include <offpath/messages.h>

#include "header.h"

namespace offpath::mpi::p2p {

struct Parcel;
struct Watch;

// A receive with room for a large message, posted with the host's MPI to one piece of memory: `at`, where its
// header comes, and its message of at most `room` bytes too. Where the thread cannot be started, nothing is
// watched.
void watch(Parcel& parcel, char* at, std::size_t room);

// What the watcher asked the device for.
struct Asked {
    Header header;
    offpath_request_h mail = nullptr;
};
// The receive is looked at no longer. Returns whether its message was asked for, and what it was.
bool unwatch(Parcel& parcel, Asked* asked);

// At the end of the attachment, when nothing is watched any more.
void close_watcher();

}  // namespace offpath::mpi::p2p
