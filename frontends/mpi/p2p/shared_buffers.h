// Shared buffers: receives under way at the same time whose memory overlaps.
//
// MPI forbids it, yet programs do it: bandwidth benchmarks post all receives of a window into one buffer.
// What lies there at the end is any of the messages. A header must not be lost in it, though: one lies in the
// user's buffer until it is looked at, if its receive was expected from the host's MPI. So receives that
// overlap such a one land in memory of ours, which costs a copy.
//
// Once a receiver has seen this it tells the sender. The sender promises to send messages of this peer and
// tag without headers from then on, and tells the number of the first. From that number on receives take the
// user's buffer as it is, as without us.
//
// Threads: one; not used with MPI_THREAD_MULTIPLE.
#pragma once

#include <cstdint>
#include <vector>

namespace offpath::mpi::p2p {

struct Pairs;
struct Parcel;

// Large receives, from their posting to their end.
void receive_under_way(Parcel& parcel);
void receive_over(Parcel& parcel);

enum class Overlap : std::uint8_t { none, another, expected };
// Of a receive that is not posted yet. expected: with one in whose buffer a header may lie.
Overlap overlap_of(const Parcel& parcel);
// Those whose buffers may hold headers beneath what this one received; their messages came before.
std::vector<Parcel*> expected_beneath(const Parcel& parcel);

// The receiver, of an overlap. The sender is told once by peer and tag.
void tell_of_shared_buffer(const Parcel& parcel);
// The sender, of what its peer has told.
void promise_no_headers(Pairs& pairs, int peer, int tag);
bool has_promised_no_headers(Pairs& pairs, int peer, int tag);
// The receiver, of the sender's promise.
void no_headers_from(Pairs& pairs, int peer, int tag, std::uint32_t number);
// Whether the sender's promise covers the message of this receive.
bool comes_without_header(const Parcel& parcel);

}  // namespace offpath::mpi::p2p
