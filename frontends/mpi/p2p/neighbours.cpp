#include "neighbours.h"

#include <fmt/format.h>
#include <mpi.h>

#include <atomic>

#include "communicators/counters.h"
#include "datatypes/known_types.h"
#include "runtime/runtime.h"
#include "settings.h"

namespace offpath::mpi::p2p {
namespace {

std::atomic<std::uint64_t> large{0};

}  // namespace

void open_neighbours() {
    constexpr std::uint64_t largest_element = 32;  // bytes of a complex long double
    if (job_settings.scope == Scope::remote && is_on_one_node())
        least_counted = static_cast<int>(job_settings.min_bytes / largest_element);
}

void count_neighbour(const Arguments& message) {
    const std::size_t bytes = static_cast<std::size_t>(message.count) * bytes_of_type(message.type);
    if (message.peer >= 0 && bytes >= job_settings.min_bytes) large.fetch_add(1, std::memory_order_relaxed);
}

void add_hints(std::vector<std::string>& hints) {
    const std::uint64_t mine = large.load();
    std::uint64_t all = 0;
    PMPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, runtime().service);
    if (all > 0)
        hints.push_back(fmt::format("OFFPATH_P2P=all for {} message{} of {} or more within the node", all,
                                    all == 1 ? "" : "s", human_bytes(job_settings.min_bytes)));
}

}  // namespace offpath::mpi::p2p
