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

enum class Op : std::uint8_t {
    ialltoall,
    ialltoallv,
    iallgather,
    iallgatherv,
    ibcast,
    ibarrier,
    iallreduce,
    ireduce,
    igather,
    igatherv,
    iscatter,
    iscatterv,
    ireduce_scatter,
    ireduce_scatter_block,
    iscan,
    iexscan,
    ialltoallw,
    ineighbor_allgather,
    ineighbor_allgatherv,
    ineighbor_alltoall,
    ineighbor_alltoallv,
    ineighbor_alltoallw,
};
inline constexpr std::size_t op_count = 22;

// How the user called it: MPI_Ialltoall, MPI_Alltoall, MPI_Start of what MPI_Alltoall_init made.
enum class Form : std::uint8_t { nonblocking, blocking, persistent };

struct OpTraits {
    const char* key;          // in OFFPATH_OPS; that of the blocking form has no "i"
    std::uint64_t min_bytes;  // the switch-over: from here on the device wins
    bool by_default;          // offloaded unless OFFPATH_OPS says otherwise
    bool by_pair;             // the switch-over is that of one pair of ranks
    bool each_pair_decides;   // and each pair decides for itself
};
const OpTraits& traits(Op op);
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
};
inline constexpr std::size_t host_reason_count = 12;
// Reads after a number: "5 below the switch-over".
const char* describe(HostReason reason);

// Sets of operations, one bit each. Persistent ones count as non-blocking.
struct OpSet {
    std::uint32_t nonblocking = 0;
    std::uint32_t blocking = 0;

    bool has(Op op, Form form) const {
        const std::uint32_t set = form == Form::blocking ? blocking : nonblocking;
        return (set >> static_cast<unsigned>(op) & 1U) != 0;
    }
};

// Trivially copyable: rank 0's goes to all ranks as bytes.
struct Selection {
    std::array<std::uint64_t, op_count> min_bytes{};
    OpSet ops;
    bool given = false;  // OFFPATH_MIN_BYTES says min_bytes: nothing measured may change them

    bool enabled(Op op, Form form = Form::nonblocking) const { return ops.has(op, form); }
    // From how many bytes on: of one pair for the operations that decide by pair, of the whole result for the
    // others. An empty operation is never worth a device.
    std::uint64_t threshold(Op op) const {
        const std::uint64_t least = min_bytes[static_cast<std::size_t>(op)];
        return least > 0 ? least : 1;
    }
};

// From OFFPATH_MIN_BYTES and OFFPATH_OPS. Throws std::invalid_argument.
Selection read_selection();

// Names joined by commas: "ialltoall", "alltoall" (the blocking form), "default", "all" (every non-blocking
// one), "blocking" (every blocking one). Nothing is the default. Throws std::invalid_argument.
OpSet parse_ops(const std::string& text);

}  // namespace offpath::mpi
