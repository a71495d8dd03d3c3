// Which point-to-point messages go to the device. Rank 0's settings hold for all ranks, since both ends of a
// message have to come to the same answer without asking each other. Pure values.
#pragma once

#include <cstdint>

#include "header.h"

namespace offpath::mpi::p2p {

// Between which ranks the device may carry messages.
enum class Scope : std::uint8_t { off, remote, all };

// Trivially copyable: rank 0's goes to all ranks as bytes.
struct Settings {
    Scope scope = Scope::remote;
    std::uint64_t min_bytes = 128 << 10;  // from here on; more than a header
    std::uint8_t waited_by_host = 1;      // those that nobody computes beside are the host's after all
    HeaderSecret secret;
};

// From OFFPATH_P2P, OFFPATH_P2P_WAITED and OFFPATH_MIN_BYTES. Throws std::invalid_argument.
Settings read_settings();

}  // namespace offpath::mpi::p2p
