#include "sim/profile/collective_call.h"

#include "collectives/selection.h"
#include "sim/programs/exchanges_by_rank.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace offpath::sim {
namespace {

using collectives::Reducing;
using collectives::TeamShape;
using schedule::Schedule;

constexpr const char* collective_names[] = {"barrier",
                                            "alltoall",
                                            "alltoallv",
                                            "alltoallw",
                                            "allgather",
                                            "allgatherv",
                                            "bcast",
                                            "allreduce",
                                            "reduce",
                                            "reduce_scatter",
                                            "reduce_scatter_block",
                                            "gather",
                                            "gatherv",
                                            "scatter",
                                            "scatterv",
                                            "scan",
                                            "exscan",
                                            "neighbor_allgather",
                                            "neighbor_allgatherv",
                                            "neighbor_alltoall",
                                            "neighbor_alltoallv",
                                            "neighbor_alltoallw"};

bool is_name(const std::string& text) {
    return std::find(std::begin(collective_names), std::end(collective_names), text) !=
           std::end(collective_names);
}

std::vector<std::uint64_t> offsets_of(std::span<const std::uint64_t> sizes) {
    std::vector<std::uint64_t> offsets(sizes.size());
    std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), std::uint64_t{0});
    return offsets;
}

Reducing sums_of(bool doubles) {
    return {doubles ? schedule::DataType::float64 : schedule::DataType::uint8, schedule::Reduction::sum};
}

// Collectives whose blocks differ. The file has the bytes of all ranks' blocks, or of both directions.
std::optional<Schedule> build_vector(const std::string& name, TeamShape team, const ProfiledCall& call,
                                     std::uint32_t root, std::optional<HostCall> of_host) {
    const std::span<const std::uint64_t> list(call.list);
    if (name == "alltoallv" || name == "alltoallw") {
        if (list.size() != 2 * std::size_t{team.size}) return std::nullopt;
        const auto sent = list.first(team.size), received = list.last(team.size);
        const auto from = offsets_of(sent), to = offsets_of(received);
        const collectives::VectorArgs args{sent, from, received, to};
        if (!of_host) return collectives::alltoallv(team, args);
        return of_host->order == SendOrder::by_rank ? alltoallv_by_rank(team, args)
                                                    : collectives::alltoallv_linear(team, args, team.size);
    }
    if (name == "gatherv" || name == "scatterv") {
        const bool is_root = team.rank == root;
        if (is_root != (list.size() == team.size)) return std::nullopt;
        const std::uint64_t own = is_root ? list[team.rank] : call.bytes;
        const std::vector<std::uint64_t> offsets = offsets_of(list);
        return name == "gatherv"
                   ? collectives::gatherv_linear(team, root, own, list, offsets, false, team.size)
                   : collectives::scatterv_linear(team, root, own, list, offsets, false, team.size);
    }
    if (list.size() != team.size) return std::nullopt;
    if (name == "allgatherv") return collectives::allgatherv(team, list, offsets_of(list), false);
    const bool doubles = std::ranges::all_of(list, [](std::uint64_t size) { return size % 8 == 0; });
    return collectives::reduce_scatter(team, list, sums_of(doubles));
}

}  // namespace

std::optional<CollectiveName> collective_name(const std::string& call) {
    CollectiveName found{call, true};
    std::transform(call.begin(), call.end(), found.name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (is_name(found.name)) return found;
    if (found.name.empty() || found.name[0] != 'i' || !is_name(found.name.substr(1))) return std::nullopt;
    return CollectiveName{found.name.substr(1), false};
}

std::optional<Schedule> build_collective(const std::string& name, TeamShape team, const ProfiledCall& call,
                                         std::optional<HostCall> of_host) {
    const std::uint64_t bytes = call.bytes;
    const auto root = static_cast<std::uint32_t>(std::max(0, call.peer));
    if (name == "barrier") return collectives::barrier(team);
    for (const char* const vector :
         {"alltoallv", "alltoallw", "gatherv", "scatterv", "allgatherv", "reduce_scatter"})
        if (name == vector) return build_vector(name, team, call, root, of_host);
    if (bytes == 0) return std::nullopt;
    const Reducing sums = sums_of(bytes % 8 == 0);
    if (of_host) {
        const std::string same = name == "reduce_scatter_block" ? "reduce_scatter" : name;
        if (auto schedule = build_of_host({same, bytes, root, sums, of_host->order, of_host->blocking}, team))
            return schedule;
    }
    const std::vector<std::uint64_t> blocks(team.size, bytes);
    if (name == "alltoall") return collectives::alltoall(team, bytes);
    if (name == "allgather") return collectives::allgatherv(team, blocks, offsets_of(blocks), false);
    if (name == "bcast") return collectives::bcast(team, root, bytes);
    if (name == "allreduce") return collectives::allreduce(team, bytes, sums, false);
    if (name == "reduce") return collectives::reduce(team, root, bytes, sums, false);
    if (name == "reduce_scatter_block") return collectives::reduce_scatter(team, blocks, sums);
    if (name == "gather") return collectives::gather(team, root, bytes, false);
    if (name == "scatter") return collectives::scatter(team, root, bytes, false);
    if (name == "scan") return collectives::scan(team, bytes, sums, false, false);
    if (name == "exscan") return collectives::scan(team, bytes, sums, false, true);
    return std::nullopt;
}

}  // namespace offpath::sim
