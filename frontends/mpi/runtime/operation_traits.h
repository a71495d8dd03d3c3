// The operations that the front end offloads, and what the rows of collectives.txt say of each. Pure values,
// any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace offpath::mpi {

// Which bytes of a call its switch-over counts.
enum class Counted : std::uint8_t { nothing, pair, each_pair, all_blocks, vector };

struct OpTraits {
    const char* key;          // in OFFPATH_OPS; that of the blocking form has no "i"
    std::uint64_t min_bytes;  // the switch-over: the device is faster from this size on
    Counted counted;
    bool synchronizes;  // no rank leaves the blocking form before all have entered

    // What moves no data is as fast on the host, and the program waits for it at once in most uses: it is
    // offloaded only where OFFPATH_OPS says so.
    constexpr bool has_data() const { return counted != Counted::nothing; }
    // No rank knows all sizes, so each pair of ranks decides for itself.
    constexpr bool each_pair_decides() const { return counted == Counted::each_pair; }
    // The switch-over applies to one pair of ranks.
    constexpr bool by_pair() const { return counted == Counted::pair || each_pair_decides(); }
    // Each rank exchanges data with others and forwards none. This holds where sizes count by pair.
    constexpr bool is_direct() const { return by_pair(); }
};

// Op, an enumerator for each row, and op_rows. A generated part of this header, not a header of its own.
#include "generated/ops.h"

inline constexpr std::size_t op_count = op_rows.size();

constexpr const OpTraits& traits(Op op) {
    return op_rows[static_cast<std::size_t>(op)];
}

}  // namespace offpath::mpi
