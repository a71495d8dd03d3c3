#include "sim/profile/command.h"

#include "sim/profile/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace offpath::sim {

nlohmann::json replay_program(const std::string& folder, const Platform& platform,
                              const ClusterShape& shape) {
    const std::vector<RankProfile> profiles = read_profile(folder);
    if (profiles.size() != shape.ranks())
        throw std::invalid_argument(
            fmt::format("{}: the profile has {} ranks, and {} nodes with {} ranks each have {}", folder,
                        profiles.size(), shape.nodes, shape.ranks_per_node, shape.ranks()));
    ClusterShape mixed = shape;
    mixed.keeps_libraries = true;
    Cluster cluster(platform, mixed);
    const Replayed replayed = replay(cluster, profiles);

    double measured = 0;
    std::uint64_t lost = 0;
    for (const RankProfile& profile : profiles) {
        measured = std::max(measured, profile.measured_s());
        lost += profile.lost;
    }
    nlohmann::json result{
        {"program", folder},
        {"platform", platform.name},
        {"nodes", shape.nodes},
        {"ranks", shape.ranks()},
        {"engine", shape.engine == EngineKind::host ? "host" : "offpath"},
        {"time_s", replayed.time_s},
        {"measured_s", measured},
        {"lost_calls", lost},
        {"unsupported", nlohmann::json::object()},
        {"calls", nlohmann::json::array()},
        {"events", cluster.queue().events()},
        {"messages", cluster.network().messages()},
        {"wire_bytes", cluster.network().bytes_between_nodes()},
        {"workers_busy_s", seconds_of(cluster.workers_busy())},
    };
    for (const auto& [name, what] : replayed.unsupported)
        result["unsupported"][name] = {{"count", what.count}, {"inside_s", what.inside_s}};
    for (std::size_t rank = 0; rank < replayed.calls.size(); ++rank)
        for (std::size_t call = 0; call < replayed.calls[rank].size(); ++call)
            if (const ReplayedCall& its = replayed.calls[rank][call]; its.count > 0)
                result["calls"].push_back({rank, call, its.count, its.inside_s});
    return result;
}

}  // namespace offpath::sim
