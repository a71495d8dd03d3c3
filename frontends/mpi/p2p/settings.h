// Which point-to-point messages go to the device. All ranks use rank 0's settings, because both ends of a
// message must decide alike without communicating. Pure values.
#pragma once

#include <cstdint>

#include "header.h"

namespace offpath::mpi::p2p {

// The ranks between which the device may carry messages.
enum class Scope : std::uint8_t { off, remote, all };

// Trivially copyable: all ranks receive rank 0's as bytes.
struct Settings {
    Scope scope = Scope::remote;
    std::uint64_t min_bytes = 128 << 10;  // the least size for the device; more than a header
    std::uint8_t waited_by_host = 1;      // messages that are only waited for use the host's MPI
    HeaderSecret secret;

    // Whether messages beside which the program computes begin with the device.
    bool begins_with_device() const { return scope == Scope::all || waited_by_host == 0; }
};

// The job's. Written in MPI_Init.
inline Settings job_settings;
// Sets it to rank 0's on all ranks. Collective over the world.
void agree_on_settings();

// Reads OFFPATH_P2P, OFFPATH_P2P_WAITED and OFFPATH_MIN_BYTES. Throws std::invalid_argument.
Settings read_settings();

}  // namespace offpath::mpi::p2p
