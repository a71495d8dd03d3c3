#include "base/variables.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace offpath::environment {
namespace {

// The names of the variables that the front ends, the client, the daemon and the command read. The build
// collects them from the sources (cmake/list-variables.cmake).
constexpr std::string_view known[] = {
#include "known_variables.inc"
};
constexpr std::string_view prefix = "OFFPATH_";
constexpr std::string_view of_tests = "OFFPATH_TEST_";

// The least number of letters to insert, remove or replace to turn `a` into `b` (Levenshtein, 1966).
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row[b.size()];
}

std::string sentence(std::string_view name) {
    const std::size_t near = (name.size() - prefix.size() + 2) / 3;
    const auto* const nearest = std::min_element(std::begin(known), std::end(known), [&](auto a, auto b) {
        return distance(name, a) < distance(name, b);
    });
    if (distance(name, *nearest) > near) return fmt::format("{} is set, and nothing reads it", name);
    return fmt::format("{} is set, and nothing reads it; is {} meant?", name, *nearest);
}

}  // namespace

std::vector<std::string> unknown_variables(const char* const* set) {
    std::vector<std::string> said;
    for (; set != nullptr && *set != nullptr; ++set) {
        const std::string_view entry = *set;
        const std::string_view name = entry.substr(0, entry.find('='));
        if (name.substr(0, prefix.size()) != prefix || name.substr(0, of_tests.size()) == of_tests) continue;
        if (std::find(std::begin(known), std::end(known), name) == std::end(known))
            said.push_back(sentence(name));
    }
    std::sort(said.begin(), said.end());
    return said;
}

std::vector<std::string> unknown_variables() {
    return unknown_variables(environ);
}

}  // namespace offpath::environment
