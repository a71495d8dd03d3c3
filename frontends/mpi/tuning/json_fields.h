// Fields of the JSON files of tuning, checked. Each function throws std::invalid_argument, which says what is
// wrong where, and what is accepted. Pure, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/selection.h"

namespace offpath::mpi::json_fields {

using Json = nlohmann::json;

// What these files may hold.
inline constexpr std::uint64_t most_ranks = 1U << 30;
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;
inline constexpr double longest_s = 1e6;

[[noreturn]] void refuse(const std::string& what);

const Json& member(const Json& object, const char* name, const std::string& where);
std::uint64_t whole(const Json& object, const char* name, std::uint64_t least, std::uint64_t most,
                    const std::string& where);
// From 0 to `most`.
double real(const Json& object, const char* name, double most, const std::string& where);
std::string text(const Json& object, const char* name, const std::string& where);
// The member "op".
Op operation(const Json& row, const std::string& where);
// A row with what all of them begin with: operation, shape of the team, and bytes.
template <typename Row>
Row begin_row(const Json& row, const std::string& where) {
    Row made;
    made.op = operation(row, where);
    made.shape.ranks = static_cast<std::uint32_t>(whole(row, "ranks", 2, most_ranks, where));
    made.shape.nodes = static_cast<std::uint32_t>(whole(row, "nodes", 1, made.shape.ranks, where));
    made.bytes = whole(row, "bytes", 1, most_bytes, where);
    return made;
}
// The text as JSON.
Json parse(const std::string& text);

}  // namespace offpath::mpi::json_fields
