#include "signature.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <bit>

#include "json_fields.h"

namespace offpath::mpi {
namespace {

using namespace json_fields;

constexpr std::uint64_t signature_version = 1;
constexpr std::size_t most_rows = 4096;
constexpr std::array<const char*, 2> phase_names{"computes", "waits"};  // by Phase

template <std::size_t count>
std::size_t one_of(const Json& object, const char* name, const std::array<const char*, count>& words,
                   const std::string& where) {
    const std::string word = text(object, name, where);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end())
        refuse(fmt::format("{}: \"{}\" is '{}'; accepted are {}", where, name, word, fmt::join(words, ", ")));
    return static_cast<std::size_t>(found - words.begin());
}

constexpr std::array<const char*, 2> engine_names{"host", "device"};  // by Engine

LearnedRow parse_learned(const Json& row, const std::string& where) {
    auto made = begin_row<LearnedRow>(row, where);
    made.calls = whole(row, "calls", 0, most_bytes, where);
    made.what.phase = static_cast<Phase>(one_of(row, "phase", phase_names, where));
    for (std::size_t i = 0; i < phase_names.size(); ++i)
        made.what.engines[i] = static_cast<Engine>(one_of(row, phase_names[i], engine_names, where));
    for (std::size_t i = 0; i < engine_names.size(); ++i) {
        if (!row.contains(engine_names[i])) continue;
        const Json& seen = row[engine_names[i]];
        const std::string here = fmt::format("{}, \"{}\"", where, engine_names[i]);
        made.what.seen[i] = {real(seen, "exposed_s", longest_s, here),
                             real(seen, "elapsed_s", longest_s, here)};
    }
    return made;
}

Json to_object(const LearnedRow& row) {
    Json made{{"op", traits(row.op).key}, {"ranks", row.shape.ranks},
              {"nodes", row.shape.nodes}, {"bytes", row.bytes},
              {"calls", row.calls},       {"phase", phase_names[static_cast<std::size_t>(row.what.phase)]}};
    for (std::size_t i = 0; i < phase_names.size(); ++i)
        made[phase_names[i]] = engine_names[static_cast<std::size_t>(row.what.engines[i])];
    for (std::size_t i = 0; i < engine_names.size(); ++i)
        if (row.what.seen[i].elapsed_s > 0)
            made[engine_names[i]] = {{"exposed_s", row.what.seen[i].exposed_s},
                                     {"elapsed_s", row.what.seen[i].elapsed_s}};
    return made;
}

}  // namespace

unsigned size_class(std::uint64_t bytes) {
    return static_cast<unsigned>(std::bit_width(bytes));
}

const LearnedRow* find_row(std::span<const LearnedRow> rows, Op op, const TeamShape& shape,
                           std::uint64_t bytes) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const LearnedRow& row) {
        return row.op == op && row.shape == shape && size_class(row.bytes) == size_class(bytes);
    });
    return found != rows.end() ? &*found : nullptr;
}

void put(std::vector<LearnedRow>& rows, const LearnedRow& row, bool only_if_more_calls) {
    const LearnedRow* const found = find_row(rows, row.op, row.shape, row.bytes);
    if (found == nullptr) {
        if (rows.size() < most_rows) rows.push_back(row);
    } else if (!only_if_more_calls || row.calls > found->calls) {
        rows[static_cast<std::size_t>(found - rows.data())] = row;
    }
}

std::string digest(std::span<const char> bytes) {
    std::array<unsigned char, crypto_generichash_BYTES_MIN> hash{};
    crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                       bytes.size(), nullptr, 0);
    return fmt::format("{:02x}", fmt::join(hash, ""));
}

std::string SignatureKey::id() const {
    return digest(fmt::format("{}\n{}\n{}\n{}\n{}", content, mpi, platform, ranks, nodes));
}

std::string Signature::to_json(const std::string& when) const {
    Json learned = Json::array();
    for (const LearnedRow& row : rows)
        learned.push_back(to_object(row));
    const Json all{{"offpath_signature", signature_version},
                   {"program", {{"name", key.name}, {"content", key.content}}},
                   {"mpi", key.mpi},
                   {"platform", key.platform},
                   {"ranks", key.ranks},
                   {"nodes", key.nodes},
                   {"runs", runs},
                   {"written", when},
                   {"learned", learned}};
    return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Signature Signature::parse(const std::string& json) {
    const Json all = json_fields::parse(json);
    const std::string top = "the signature";
    if (whole(all, "offpath_signature", 0, most_bytes, top) != signature_version)
        refuse(fmt::format("its version is {}; this library reads version {}",
                           all["offpath_signature"].dump(), signature_version));
    Signature made;
    const Json& program = member(all, "program", top);
    made.key = {text(program, "name", "\"program\""),
                text(program, "content", "\"program\""),
                text(all, "mpi", top),
                text(all, "platform", top),
                static_cast<std::uint32_t>(whole(all, "ranks", 2, most_ranks, top)),
                static_cast<std::uint32_t>(whole(all, "nodes", 1, most_ranks, top))};
    made.runs = whole(all, "runs", 0, most_bytes, top);
    const Json& rows = member(all, "learned", top);
    if (!rows.is_array() || rows.size() > most_rows)
        refuse(fmt::format("\"learned\" is no list of at most {} rows", most_rows));
    for (std::size_t i = 0; i < rows.size(); ++i)
        put(made.rows, parse_learned(rows[i], fmt::format("row {}", i + 1)), false);
    return made;
}

}  // namespace offpath::mpi
