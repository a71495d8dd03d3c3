#include "sim/machine/cluster.h"

#include <stdexcept>

namespace offpath::sim {
namespace {

constexpr std::uint64_t world_team = 1;

NetworkFigures network_figures(const Platform& platform, Sharing sharing) {
    NetworkFigures figures;
    figures.port_Bps = figures.link_Bps = platform.link_Bps;
    figures.port_burst = platform.link_burst_bytes;
    figures.port_latency = from_seconds(platform.link_latency_s);
    figures.link_latency = from_seconds(platform.switch_latency_s);
    figures.inside_Bps = platform.inside_Bps;
    figures.inside_latency = from_seconds(platform.inside_latency_s);
    figures.sharing = sharing;
    return figures;
}

void check(Status status, const char* what) {
    if (is_error(status)) throw std::runtime_error(std::string(what) + ": " + to_string(status));
}

}  // namespace

Cluster::Cluster(const Platform& platform, const ClusterShape& shape) : platform_(platform), shape_(shape) {
    network_ = std::make_unique<Network>(queue_, network_figures(platform, shape.sharing), shape.topology,
                                         shape.nodes);
    const std::uint32_t sets = platform.shared_cores ? 1 : shape.nodes;
    for (std::uint32_t i = 0; i < sets * platform.host_cores; ++i)
        host_cores_.emplace_back(queue_);
    for (std::uint32_t i = 0; i < sets * platform.device_cores; ++i)
        device_cores_.emplace_back(queue_);
    for (std::uint32_t i = 0; i < shape.nodes * 2; ++i)
        buses_.emplace_back(queue_, platform.bus_Bps, from_seconds(platform.bus_latency_s), Sharing::fifo);
    make_workers();
    open_sessions();
}

Cluster::~Cluster() = default;

void Cluster::make_workers() {
    const bool offpath = shape_.engine == EngineKind::offpath;
    const std::uint32_t count = offpath ? shape_.nodes * shape_.proxies : shape_.ranks();
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t node = offpath ? i / shape_.proxies : node_of(i);
        Core& core = offpath ? device_core(node, i % shape_.proxies) : host_core_of(i);
        workers_.push_back(std::make_unique<Worker>(*this,
                                                    offpath ? Worker::Kind::proxy : Worker::Kind::library, i,
                                                    node, core, shape_.engine_config, shape_.seed + i));
    }
}

void Cluster::open_sessions() {
    const engine::JobId job{1, shape_.seed};
    engine::JobSecret secret;
    secret.fill(std::byte{1});
    std::vector<engine::Member> members;
    for (std::uint32_t rank = 0; rank < shape_.ranks(); ++rank)
        members.push_back({worker_number(rank) + 1, rank});
    std::vector<std::vector<std::byte>> addresses;
    for (const auto& worker : workers_)
        addresses.push_back(worker->transport().address());
    // A library reaches its own rank's memory; a proxy goes by the platform's back end.
    const HostMemoryKind kind = shape_.engine == EngineKind::host ? HostMemoryKind::map : platform_.memory;
    sessions_.resize(shape_.ranks());
    teams_.resize(shape_.ranks());
    for (std::uint32_t rank = 0; rank < shape_.ranks(); ++rank) {
        Worker& worker = worker_of(rank);
        const std::uint32_t node = node_of(rank);
        memories_.push_back(
            std::make_unique<SimMemory>(*this, worker, kind, &buses_[node * 2], &buses_[node * 2 + 1]));
        check(worker.engine().open_session(job, secret, rank, *memories_.back(), &sessions_[rank]),
              "open_session");
        for (std::uint32_t other = 0; other < workers_.size(); ++other)
            check(worker.engine().add_proxy(*sessions_[rank], other + 1, addresses[other]), "add_proxy");
        check(worker.engine().create_team(*sessions_[rank], world_team, rank, members, &teams_[rank]),
              "create_team");
    }
}

std::uint32_t Cluster::worker_number(std::uint32_t rank) const {
    if (shape_.engine == EngineKind::host) return rank;
    return node_of(rank) * shape_.proxies + rank % shape_.ranks_per_node % shape_.proxies;
}

Core& Cluster::host_core_of(std::uint32_t rank) {
    const std::uint32_t set = platform_.shared_cores ? 0 : node_of(rank) * platform_.host_cores;
    return host_cores_[set + rank % shape_.ranks_per_node % platform_.host_cores];
}

bool Cluster::host_core_is_shared() const {
    return (platform_.shared_cores ? shape_.ranks() : shape_.ranks_per_node) > platform_.host_cores;
}

Core& Cluster::device_core(std::uint32_t node, std::uint32_t proxy) {
    const std::uint32_t set = platform_.shared_cores ? 0 : node * platform_.device_cores;
    return device_cores_[set + proxy % platform_.device_cores];
}

std::byte* Cluster::empty(std::size_t bytes) {
    if (empty_.empty() || empty_.back()->bytes() < bytes)
        empty_.push_back(std::make_unique<EmptyRange>(bytes));
    return empty_.back()->begin();
}

std::size_t Cluster::connections() const {
    std::size_t all = 0;
    for (const auto& worker : workers_)
        all += worker->transport().connections();
    return all;
}

Time Cluster::workers_busy() const {
    Time all = 0;
    for (const auto& worker : workers_)
        all += worker->busy();
    return all;
}

}  // namespace offpath::sim
