#include "selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>

#include "base/environment.h"

namespace offpath::mpi {
namespace {

constexpr std::array<const char*, host_reason_count> host_reasons = {
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
    "after a device was lost",
};

constexpr std::array<const char*, host_reason_count> keys = {
    "none",    "small",     "switched_off", "one_rank", "idup",           "foreign", "no_team",
    "user_op", "reduction", "turned_off",   "measured", "neighbor_order", "lost",
};

std::uint32_t bit(std::size_t index) {
    return std::uint32_t{1} << index;
}

}  // namespace

const char* describe(HostReason reason) {
    return host_reasons[static_cast<std::size_t>(reason)];
}

const char* key_of(HostReason reason) {
    return keys[static_cast<std::size_t>(reason)];
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

constexpr auto every_op = static_cast<std::uint32_t>((std::uint64_t{1} << op_count) - 1);

OpSet default_ops() {
    OpSet set;
    for (std::size_t i = 0; i < op_count; ++i) {
        if (op_rows[i].has_data()) set.nonblocking |= bit(i);
    }
    return set;
}

// Returns the operations that one word stands for, or nothing if it stands for none.
std::optional<OpSet> ops_of(const std::string& word) {
    if (word == "default") return default_ops();
    if (word == "all") return OpSet{every_op, 0};
    if (word == "blocking") return OpSet{0, every_op};
    for (std::size_t i = 0; i < op_count; ++i) {
        if (word == op_rows[i].key) return OpSet{bit(i), 0};
        if (word == op_rows[i].key + 1) return OpSet{0, bit(i)};
    }
    return std::nullopt;
}

std::string known_words() {
    std::string known;
    for (const OpTraits& op : op_rows)
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
        const std::uint64_t least = environment::bytes("OFFPATH_MIN_BYTES", op_rows[i].min_bytes);
        selection.min_bytes[i] = op_rows[i].has_data() ? least : 0;
    }
    selection.given = !environment::text("OFFPATH_MIN_BYTES", "").empty();
    return selection;
}

}  // namespace offpath::mpi
