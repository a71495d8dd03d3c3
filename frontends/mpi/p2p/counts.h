// Counts of point-to-point messages, for limits and for the summary. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::mpi::p2p {

// Limits this process's sends on the device, so that operations that end by themselves always have room in
// the channel.
inline constexpr std::uint32_t most_sends_in_flight = 1024;
inline std::atomic<std::uint32_t> sends_in_flight{0};
inline std::atomic<std::uint32_t> early_in_flight{0};  // receives on the device that no message has met

void count_sent(std::size_t bytes);  // by the device
// Sent by the host's MPI, because both ends only wait, or because that makes the program's steps shorter.
void count_kept_by_host(bool only_waited_for);
void count_rescued();  // sent again by the host, because a device has lost it
void count_early();    // a receive whose message the device had before the host's MPI

}  // namespace offpath::mpi::p2p
