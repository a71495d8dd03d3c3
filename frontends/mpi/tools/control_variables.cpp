#include "control_variables.h"

#include <mpi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "base/environment.h"
#include "runtime/runtime.h"
#include "tuning/switches.h"

namespace offpath::mpi::tools {
namespace {

constexpr ControlVariable table[] = {
#include "control_variables.inc"
};

std::mutex values_mutex;
// By the variable's name, from MPI_Init on: what holds instead of this process's environment.
std::map<std::string_view, std::string> values;

// The words of a switch that a write stands for; empty: the variable cannot be written after MPI_Init.
std::string switch_for(std::string_view variable, const std::string& text) {
    if (variable == "OFFPATH") return text.empty() || text == "1" ? "on" : text == "0" ? "off" : text;
    if (variable == "OFFPATH_OPS") return text.empty() ? "on" : "ops " + text;
    return {};
}

}  // namespace

std::span<const ControlVariable> control_variables() {
    return table;
}

std::string name_of(const ControlVariable& variable) {
    std::string name = variable.variable;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

std::string value_of(const ControlVariable& variable) {
    const std::lock_guard lock(values_mutex);
    const auto found = values.find(variable.variable);
    return found != values.end() ? found->second : environment::text(variable.variable, "");
}

bool set_value(const ControlVariable& variable, const std::string& text) {
    int begun = 0;
    PMPI_Initialized(&begun);
    if (begun == 0) {
        if (text.empty()) return unsetenv(variable.variable) == 0;
        return setenv(variable.variable, text.c_str(), 1) == 0;
    }
    const std::string words = switch_for(variable.variable, text);
    if (words.empty() || !switch_offloading(words)) return false;
    const std::lock_guard lock(values_mutex);
    values[variable.variable] = text;
    return true;
}

void agree_on_values() {
    std::string texts;  // each with a zero at its end, in the order of the table
    if (runtime().rank == 0)
        for (const ControlVariable& one : table)
            if (one.shared) texts += environment::text(one.variable, "") + '\0';
    std::uint64_t bytes = texts.size();
    PMPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    texts.resize(bytes);
    PMPI_Bcast(texts.data(), static_cast<int>(bytes), MPI_CHAR, 0, MPI_COMM_WORLD);
    const std::lock_guard lock(values_mutex);
    std::size_t at = 0;
    for (const ControlVariable& one : table) {
        if (!one.shared) continue;
        const std::size_t end = texts.find('\0', at);
        values[one.variable] = texts.substr(at, end - at);
        at = end + 1;
    }
}

}  // namespace offpath::mpi::tools
