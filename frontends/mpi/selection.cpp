#include "selection.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/environment.h"

namespace offpath::mpi {
namespace {

constexpr std::uint64_t kib = 1024;

// A barrier moves no data: the host's is as fast, and the program waits for it at once in most uses.
constexpr std::array<OpTraits, op_count> table = {{
    {"ialltoall", "MPI_Ialltoall", 64 * kib, true},
    {"ialltoallv", "MPI_Ialltoallv", 64 * kib, true},
    {"iallgather", "MPI_Iallgather", 256 * kib, true},
    {"iallgatherv", "MPI_Iallgatherv", 256 * kib, true},
    {"ibcast", "MPI_Ibcast", 256 * kib, true},
    {"ibarrier", "MPI_Ibarrier", 0, false},
}};

constexpr std::array<const char*, host_reason_count> reasons = {
    "for no reason",
    "below the switch-over",
    "switched off by OFFPATH_OPS",
    "on a communicator of one rank",
    "on a communicator from MPI_Comm_idup",
    "on a communicator that offpath does not serve",
    "on a communicator for which the device had no room",
};

std::uint32_t bit(std::size_t index) {
    return std::uint32_t{1} << index;
}

}  // namespace

const OpTraits& traits(Op op) {
    return table[static_cast<std::size_t>(op)];
}

const char* describe(HostReason reason) {
    return reasons[static_cast<std::size_t>(reason)];
}

std::uint32_t parse_ops(const std::string& text) {
    std::uint32_t ops = 0;
    std::string known;
    for (std::size_t i = 0; i < op_count; ++i) {
        if (text.empty() && table[i].by_default) ops |= bit(i);
        if (text == "all") ops |= bit(i);
        known += fmt::format("{}{}", known.empty() ? "" : ", ", table[i].key);
    }
    if (text.empty() || text == "all") return ops;

    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        const std::string name = text.substr(start, comma - start);
        std::size_t found = 0;
        while (found < op_count && name != table[found].key)
            ++found;
        if (found == op_count) {
            throw std::invalid_argument(
                fmt::format("OFFPATH_OPS='{}': '{}' is no operation; accepted are all, or some of {}", text,
                            name, known));
        }
        ops |= bit(found);
        start = comma + 1;
    }
    return ops;
}

Selection read_selection() {
    Selection selection;
    selection.ops = parse_ops(environment::text("OFFPATH_OPS", ""));
    for (std::size_t i = 0; i < op_count; ++i) {
        selection.min_bytes[i] = environment::bytes("OFFPATH_MIN_BYTES", table[i].min_bytes);
    }
    selection.min_bytes[static_cast<std::size_t>(Op::ibarrier)] = 0;
    return selection;
}

}  // namespace offpath::mpi
