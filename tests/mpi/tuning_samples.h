// What the tests of tuning share: rows of a table and the settings that hold without any.
#pragma once

#include <cstdlib>

#include "tuning/choices.h"
#include "tuning/table.h"

namespace offpath::mpi {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t ms = 1'000'000;

inline TableRow row(Op op, std::uint64_t bytes, Cost host, Cost device, TeamShape shape = {4, 2}) {
    return {op, shape, bytes, host, device};
}

inline Selection defaults() {
    unsetenv("OFFPATH_MIN_BYTES");
    unsetenv("OFFPATH_OPS");
    return read_selection();
}

}  // namespace offpath::mpi
