// Decides which operations go to the device and which stay on the host's MPI. No other code decides this.
//
// All ranks of a call must reach the same decision without communicating, so the decision depends only on
// what all of them know: the operation, the number of bytes, and the settings agreed on in MPI_Init. It
// cannot depend on the datatype, because another rank may describe the same bytes with a different one. Pure
// values, no state, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "operation_traits.h"

namespace offpath::mpi {

// The form of the call: MPI_Ialltoall, MPI_Alltoall, or MPI_Start of a request from MPI_Alltoall_init.
enum class Form : std::uint8_t { nonblocking, blocking, persistent };

// "MPI_Ialltoall"
std::string call_name(Op op, Form form = Form::nonblocking);

// Why a call went to the host's MPI.
enum class HostReason : std::uint8_t {
    none,
    small,
    switched_off,
    one_rank,
    idup,
    foreign,
    no_team,
    user_op,
    reduction,
    turned_off,
    measured,
    repeated,
    lost,
};
inline constexpr std::size_t host_reason_count = 13;
// A phrase to follow a number: "5 below the switch-over".
const char* describe(HostReason reason);
// A word for names: "small".
const char* key_of(HostReason reason);

// Sets of operations, one bit each. Persistent ones count as non-blocking.
struct OpSet {
    static_assert(op_count <= 32);
    std::uint32_t nonblocking = 0;
    std::uint32_t blocking = 0;

    bool has(Op op, Form form) const {
        const std::uint32_t set = form == Form::blocking ? blocking : nonblocking;
        return (set >> static_cast<unsigned>(op) & 1U) != 0;
    }
};

// Trivially copyable: all ranks receive rank 0's as bytes.
struct Selection {
    std::array<std::uint64_t, op_count> min_bytes{};
    OpSet ops;
    bool given = false;  // OFFPATH_MIN_BYTES set min_bytes: measurements must not change it

    bool enabled(Op op, Form form = Form::nonblocking) const { return ops.has(op, form); }
    // The least number of bytes for the device: of one pair for operations that decide by pair, of the whole
    // result for the others. Empty operations never go to the device.
    std::uint64_t threshold(Op op) const {
        const std::uint64_t least = min_bytes[static_cast<std::size_t>(op)];
        return least > 0 ? least : 1;
    }
};

// Reads OFFPATH_MIN_BYTES and OFFPATH_OPS. Throws std::invalid_argument.
Selection read_selection();

// Parses names separated by commas: "ialltoall", "alltoall" (the blocking form), "default", "all" (every
// non-blocking operation), "blocking" (every blocking one). Empty text means the default. Throws
// std::invalid_argument.
OpSet parse_ops(const std::string& text);

}  // namespace offpath::mpi
