// Which operations go to the device and which stay on the host's MPI. The only place that decides.
//
// All ranks of a call must come to the same answer without talking, so an answer depends on nothing but what
// all of them know: the operation, its bytes (never the datatypes: another rank may describe the same bytes
// differently) and settings that the ranks agreed on in MPI_Init. Pure values, no state, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace offpath::mpi {

enum class Op : std::uint8_t { ialltoall, ialltoallv, iallgather, iallgatherv, ibcast, ibarrier };
inline constexpr std::size_t op_count = 6;

struct OpTraits {
    const char* key;          // in OFFPATH_OPS
    const char* call;         // what the user called
    std::uint64_t min_bytes;  // the switch-over: from here on the device wins
    bool by_default;          // offloaded unless OFFPATH_OPS says otherwise
};
const OpTraits& traits(Op op);

// Why a call went to the host's MPI.
enum class HostReason : std::uint8_t { none, small, switched_off, one_rank, idup, foreign, no_team };
inline constexpr std::size_t host_reason_count = 7;
// Reads after a number: "5 below the switch-over".
const char* describe(HostReason reason);

// Trivially copyable: rank 0's goes to all ranks as bytes.
struct Selection {
    std::array<std::uint64_t, op_count> min_bytes{};
    std::uint32_t ops = 0;  // one bit an operation

    bool enabled(Op op) const { return (ops >> static_cast<unsigned>(op) & 1U) != 0; }
    // From how many bytes on: of one pair for the all-to-all operations, of the whole result for the others.
    // An empty operation is never worth a device.
    std::uint64_t threshold(Op op) const {
        const std::uint64_t least = min_bytes[static_cast<std::size_t>(op)];
        return least > 0 ? least : 1;
    }
};

// From OFFPATH_MIN_BYTES and OFFPATH_OPS. Throws std::invalid_argument.
Selection read_selection();

// "ialltoall,ibcast", "all" or "" (the default set). Throws std::invalid_argument.
std::uint32_t parse_ops(const std::string& text);

}  // namespace offpath::mpi
