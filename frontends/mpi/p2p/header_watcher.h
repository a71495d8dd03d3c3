// Watcher: a thread that asks the device for large messages whose headers have arrived while the program's
// thread is in a call of the host's MPI, such as MPI_Barrier. Otherwise only the program's thread would ask,
// and the senders would wait for it, possibly for ever.
//
// The host's MPI writes a header into the memory of its receive. The watcher polls that memory and makes no
// MPI call. It relies only on a header's check: partly received bytes do not pass it, nor do bytes of the
// program, nor an older header, whose number was in the memory when the receive was posted. When the host's
// MPI completes the receive, its owner finds that the message was already asked for.
//
// The payload may overwrite the header: the check covers every byte of the header, so when it passes, no
// store of the header is outstanding.
//
// The watcher polls every 50 us at first, then less and less often, down to once a millisecond. It sleeps
// while no such receive is pending. If the program uses one MPI thread, the context is shared meanwhile
// (offpath/context.h).
//
// Threads: call watch and unwatch under the lock (lock.h). A mutex of the watcher guards what it shares.
#pragma once

#include <offpath/messages.h>

#include "header.h"

namespace offpath::mpi::p2p {

struct Parcel;
struct HeaderWatch;

// Watches a receive with room for a large message, which was posted with the host's MPI to contiguous
// memory: its header arrives at `at`, or its message of at most `room` bytes. If the thread cannot be
// started, nothing is watched.
void watch(Parcel& parcel, char* at, std::size_t room);

// The message that the watcher asked the device for.
struct Asked {
    Header header;
    offpath_request_h keyed_message = nullptr;
};
// Stops watching the receive. Returns whether its message was asked for, and which one.
bool unwatch(Parcel& parcel, Asked* asked);

// Called at the end of the attachment, when nothing is watched any more.
void close_watcher();

}  // namespace offpath::mpi::p2p
