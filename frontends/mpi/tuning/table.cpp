#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "json_fields.h"

namespace offpath::mpi {
namespace {

using namespace json_fields;

constexpr std::uint64_t table_version = 1;
// A difference of one node matters more than a difference of one rank.
constexpr double weight_of_nodes = 2;

auto key(const TableRow& row) {
    return std::tuple(row.op, row.shape.nodes, row.shape.ranks, row.bytes);
}

Cost cost(const Json& row, const char* engine, const std::string& where) {
    const Json& object = member(row, engine, where);
    const std::string here = fmt::format("{}, \"{}\"", where, engine);
    return {real(object, "pure_s", longest_s, here), real(object, "overlap", 1, here)};
}

TableRow parse_row(const Json& row, const std::string& where) {
    auto made = begin_row<TableRow>(row, where);
    made.host = cost(row, "host", where);
    made.device = cost(row, "device", where);
    return made;
}

double distance(const TeamShape& a, const TeamShape& b) {
    const auto ratio = [](double x, double y) { return std::abs(std::log2(x / y)); };
    return ratio(a.ranks, b.ranks) + weight_of_nodes * ratio(a.nodes, b.nodes);
}

}  // namespace

Table::Table(std::vector<TableRow> rows) : rows_(std::move(rows)) {
    std::sort(rows_.begin(), rows_.end(),
              [](const TableRow& a, const TableRow& b) { return key(a) < key(b); });
    const auto twice = std::adjacent_find(rows_.begin(), rows_.end(),
                                          [](const auto& a, const auto& b) { return key(a) == key(b); });
    if (twice != rows_.end()) {
        refuse(fmt::format("{} of {} bytes on {} ranks of {} nodes is there twice", traits(twice->op).key,
                           twice->bytes, twice->shape.ranks, twice->shape.nodes));
    }
}

Table Table::parse(const std::string& text) {
    const Json json = json_fields::parse(text);
    const std::string top = "the table";
    if (whole(json, "offpath_tuning", 0, most_bytes, top) != table_version) {
        refuse(fmt::format("its version is {}; this library reads version {}: run `offpath tune` again",
                           json["offpath_tuning"].dump(), table_version));
    }
    const Json& rows = member(json, "rows", top);
    if (!rows.is_array()) refuse("\"rows\" is no list");
    std::vector<TableRow> made;
    for (std::size_t i = 0; i < rows.size(); ++i)
        made.push_back(parse_row(rows[i], fmt::format("row {}", i + 1)));
    return Table(std::move(made));
}

Table Table::read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
        refuse(fmt::format("tuning table {}: {}", path, std::strerror(errno)));
    try {
        return parse(text.str());
    } catch (const std::invalid_argument& error) {
        refuse(fmt::format("tuning table {}: {}", path, error.what()));
    }
}

std::vector<TableRow> Table::nearest(Op op, const TeamShape& shape) const {
    std::optional<TeamShape> best;
    for (const TableRow& row : rows_) {
        if (row.op != op || (row.shape.nodes > 1) != (shape.nodes > 1)) continue;
        if (!best || distance(row.shape, shape) < distance(*best, shape)) best = row.shape;
    }
    std::vector<TableRow> found;
    for (const TableRow& row : rows_) {
        if (best && row.op == op && row.shape == *best) found.push_back(row);
    }
    return found;
}

}  // namespace offpath::mpi
