#include "selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>

#include "base/environment.h"

namespace offpath::mpi {
namespace {

constexpr std::uint64_t kib = 1024;

// A barrier moves no data: the host's is as fast, and the program waits for it at once in most uses.
constexpr std::array<OpTraits, op_count> table = {{
    {"ialltoall", 64 * kib, true, true, false},
    {"ialltoallv", 64 * kib, true, true, true},
    {"iallgather", 256 * kib, true, false, false},
    {"iallgatherv", 256 * kib, true, false, false},
    {"ibcast", 256 * kib, true, false, false},
    {"ibarrier", 0, false, false, false},
    {"iallreduce", 256 * kib, true, false, false},
    {"ireduce", 256 * kib, true, false, false},
    {"igather", 256 * kib, true, false, false},
    {"igatherv", 64 * kib, true, true, true},
    {"iscatter", 256 * kib, true, false, false},
    {"iscatterv", 64 * kib, true, true, true},
    {"ireduce_scatter", 256 * kib, true, false, false},
    {"ireduce_scatter_block", 256 * kib, true, false, false},
    {"iscan", 256 * kib, true, false, false},
    {"iexscan", 256 * kib, true, false, false},
    {"ialltoallw", 64 * kib, true, true, true},
    {"ineighbor_allgather", 64 * kib, true, true, true},
    {"ineighbor_allgatherv", 64 * kib, true, true, true},
    {"ineighbor_alltoall", 64 * kib, true, true, true},
    {"ineighbor_alltoallv", 64 * kib, true, true, true},
    {"ineighbor_alltoallw", 64 * kib, true, true, true},
}};

constexpr std::array<const char*, host_reason_count> reasons = {
    "for no reason",
    "below the switch-over",
    "switched off by OFFPATH_OPS",
    "on a communicator of one rank",
    "on a communicator from MPI_Comm_idup",
    "on a communicator that offpath does not serve",
    "on a communicator for which the device had no room",
    "with a user-defined reduction",
    "with a reduction that the device does not know",
    "switched off while the program ran",
    "where the host was measured to be faster, or was tried",
    "among neighbours, whose blocks this MPI matches in an order of its own",
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

std::string call_name(Op op, Form form) {
    std::string rest = traits(op).key + 1;
    if (form == Form::nonblocking) return "MPI_I" + rest;
    rest[0] = static_cast<char>(std::toupper(rest[0]));
    return form == Form::blocking ? "MPI_" + rest : "the persistent MPI_" + rest;
}

namespace {

OpSet operator|(OpSet a, OpSet b) {
    return {a.nonblocking | b.nonblocking, a.blocking | b.blocking};
}

constexpr std::uint32_t every_op = (std::uint32_t{1} << op_count) - 1;

OpSet default_ops() {
    OpSet set;
    for (std::size_t i = 0; i < op_count; ++i) {
        if (table[i].by_default) set.nonblocking |= bit(i);
    }
    return set;
}

// The operations behind one word, if it is one.
std::optional<OpSet> ops_of(const std::string& word) {
    if (word == "default") return default_ops();
    if (word == "all") return OpSet{every_op, 0};
    if (word == "blocking") return OpSet{0, every_op};
    for (std::size_t i = 0; i < op_count; ++i) {
        if (word == table[i].key) return OpSet{bit(i), 0};
        if (word == table[i].key + 1) return OpSet{0, bit(i)};
    }
    return std::nullopt;
}

std::string known_words() {
    std::string known;
    for (const OpTraits& op : table)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", op.key);
    return known;
}

}  // namespace

OpSet parse_ops(const std::string& text) {
    if (text.empty()) return default_ops();
    OpSet ops;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        const std::string word = text.substr(start, comma - start);
        const std::optional<OpSet> meant = ops_of(word);
        if (!meant) {
            throw std::invalid_argument(fmt::format(
                "OFFPATH_OPS='{}': '{}' is no operation; accepted are default, all, blocking, or some of {}, "
                "each without its i for the blocking form",
                text, word, known_words()));
        }
        ops = ops | *meant;
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
    selection.given = !environment::text("OFFPATH_MIN_BYTES", "").empty();
    return selection;
}

}  // namespace offpath::mpi
