#include "sim/programs/patterns.h"

#include "sim/programs/steps.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace offpath::sim {
namespace {

constexpr std::array known_patterns{"alltoall",       "allgather", "bcast",   "allreduce", "reduce",
                                    "reduce_scatter", "gather",    "scatter", "scan",      "barrier",
                                    "halo",           "ring",      "put",     "get"};

}  // namespace

std::span<const char* const> pattern_names() {
    return known_patterns;
}

std::unique_ptr<Step> make_step(const std::string& pattern, Job& job, std::uint32_t rank,
                                std::uint64_t bytes) {
    if (std::find(known_patterns.begin(), known_patterns.end(), pattern) == known_patterns.end())
        throw std::invalid_argument(fmt::format("pattern \"{}\" is not known; accepted are {}", pattern,
                                                fmt::join(known_patterns, ", ")));
    if (pattern == "ring") return make_ring_step(job, rank, bytes);
    if (pattern == "put" || pattern == "get") return make_window_step(job, rank, bytes, pattern == "put");
    return make_schedule_step(pattern, job, rank, bytes);
}

}  // namespace offpath::sim
