// Shared buffers: simultaneous receives whose memory overlaps.
//
// MPI forbids it, but programs do it: bandwidth benchmarks post all receives of a window into one buffer. At
// the end, the buffer may hold any of the messages. But a header must not be lost there: if the message of a
// receive was expected from the host's MPI, a header stays in the user's buffer until it is examined.
// Receives that overlap such a receive therefore use memory of the front end, which costs a copy.
//
// Once a receiver has detected this, it tells the sender. The sender promises to send messages to this peer
// with this tag without headers from then on, and names the number of the first one. From that number on,
// receives use the user's buffer directly, as without offpath.
//
// Threads: one; not used with MPI_THREAD_MULTIPLE.
#pragma once

#include <cstdint>
#include <vector>

namespace offpath::mpi::p2p {

struct Pairs;
struct Parcel;

// Large receives, from their posting to their end.
void receive_outstanding(Parcel& parcel);
void receive_over(Parcel& parcel);

enum class Overlap : std::uint8_t { none, another, expected };
// For a receive that is not posted yet. expected: it overlaps a receive in whose buffer a header may be.
Overlap overlap_of(const Parcel& parcel);
// The receives whose buffers overlap this one's and may have held headers; their messages came earlier.
std::vector<Parcel*> expected_beneath(const Parcel& parcel);

// Called by the receiver when it detects an overlap. The sender is told once per peer and tag.
void tell_of_shared_buffer(const Parcel& parcel);
// Called by the sender when its peer has told it.
void promise_no_headers(Pairs& pairs, int peer, int tag);
bool has_promised_no_headers(Pairs& pairs, int peer, int tag);
// Called by the receiver when it gets the sender's promise.
void no_headers_from(Pairs& pairs, int peer, int tag, std::uint32_t number);
// Whether the sender's promise covers the message of this receive.
bool comes_without_header(const Parcel& parcel);

}  // namespace offpath::mpi::p2p
