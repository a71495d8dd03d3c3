#include "sim/machine/cluster.h"

#include <stdexcept>

namespace offpath::sim {
namespace {

NetworkFigures network_figures(const Platform& platform, Sharing sharing) {
    NetworkFigures figures;
    figures.port_Bps = figures.link_Bps = platform.link_Bps;
    figures.port_burst = platform.link_burst_bytes;
    figures.port_latency = from_seconds(platform.link_latency_s);
    figures.link_latency = from_seconds(platform.switch_latency_s);
    figures.inside_Bps = platform.inside_Bps;
    figures.inside_latency = from_seconds(platform.inside_latency_s);
    figures.sharing = sharing;
    // Two packets of 64 KiB, which is what the kernel lets a socket queue at an interface.
    if (platform.protocol == Protocol::stream) figures.segment_bytes = 128 << 10;
    return figures;
}

// An MPI library over TCP sends a long message in fragments, and the socket takes two of them while the
// program computes (btl_tcp_max_send_size of Open MPI; the bytes that it hides agree, docs/models.md).
engine::Config library_config(engine::Config config) {
    config.chunk_bytes = 128 << 10;
    config.chunks_in_flight = 2;
    return config;
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
    if (platform.turn_s > 0 && host_core_is_shared())
        for (Core& core : host_cores_)
            turns_.emplace_back(queue_, core, from_seconds(platform.turn_s), shape.seed + turns_.size());
    for (std::uint32_t i = 0; i < sets * platform.device_cores; ++i)
        device_cores_.emplace_back(queue_);
    for (std::uint32_t i = 0; i < shape.nodes * 2; ++i)
        buses_.emplace_back(queue_, platform.bus_Bps, from_seconds(platform.bus_latency_s), Sharing::fifo);
    make_workers();
    const bool host = shape.engine == EngineKind::host;
    open_sessions(host, sessions_, teams_);
    if (shape.keeps_libraries && !host) open_sessions(true, library_sessions_, library_teams_);
}

Cluster::~Cluster() = default;

void Cluster::make_workers() {
    const auto make = [this](Worker::Kind kind, std::uint32_t node, Core& core) {
        const auto number = static_cast<std::uint32_t>(workers_.size());
        const bool sockets = kind == Worker::Kind::library && platform_.protocol == Protocol::stream;
        workers_.push_back(std::make_unique<Worker>(
            *this, kind, number, node, core,
            sockets ? library_config(shape_.engine_config) : shape_.engine_config, shape_.seed + number));
    };
    for (std::uint32_t i = 0; i < first_library(); ++i)
        make(Worker::Kind::proxy, i / shape_.proxies, device_core(i / shape_.proxies, i % shape_.proxies));
    if (!shape_.has_libraries()) return;
    for (std::uint32_t rank = 0; rank < shape_.ranks(); ++rank)
        make(Worker::Kind::library, node_of(rank), host_core_of(rank));
}

void Cluster::open_sessions(bool of_libraries, std::vector<engine::Session*>& sessions,
                            std::vector<engine::Team*>& teams) {
    const auto serving = [&](std::uint32_t rank) {
        return of_libraries ? first_library() + rank : worker_number(rank);
    };
    const std::uint32_t first = of_libraries ? first_library() : 0;
    const std::uint32_t end = first + (of_libraries ? shape_.ranks() : first_library());
    engine::JobSecret secret;
    secret.fill(std::byte{1});
    std::vector<engine::Member> members;
    for (std::uint32_t rank = 0; rank < shape_.ranks(); ++rank)
        members.push_back({serving(rank) + 1, rank});
    std::vector<std::vector<std::byte>> addresses;
    for (const auto& worker : workers_)
        addresses.push_back(worker->transport().address());
    // A library reaches its own rank's memory; a proxy goes by the platform's back end.
    const HostMemoryKind kind = of_libraries ? HostMemoryKind::map : platform_.memory;
    sessions.resize(shape_.ranks());
    teams.resize(shape_.ranks());
    for (std::uint32_t rank = 0; rank < shape_.ranks(); ++rank) {
        Worker& worker = *workers_[serving(rank)];
        const std::uint32_t node = node_of(rank);
        memories_.push_back(std::make_unique<SimMemory>(*this, worker, host_core_of(rank), kind,
                                                        &buses_[node * 2], &buses_[node * 2 + 1]));
        check(worker.engine().open_session(job(), secret, rank, *memories_.back(), &sessions[rank]),
              "open_session");
        for (std::uint32_t other = first; other < end; ++other)
            check(worker.engine().add_proxy(*sessions[rank], other + 1, addresses[other]), "add_proxy");
        check(worker.engine().create_team(*sessions[rank], world_team, rank, members, &teams[rank]),
              "create_team");
    }
}

std::uint32_t Cluster::worker_number(std::uint32_t rank) const {
    if (shape_.engine == EngineKind::host) return rank;
    return node_of(rank) * shape_.proxies + rank % shape_.ranks_per_node % shape_.proxies;
}

std::size_t Cluster::core_number(std::uint32_t rank) const {
    const std::uint32_t set = platform_.shared_cores ? 0 : node_of(rank) * platform_.host_cores;
    return set + rank % shape_.ranks_per_node % platform_.host_cores;
}

Core& Cluster::host_core_of(std::uint32_t rank) {
    return host_cores_[core_number(rank)];
}

Turns* Cluster::turns_of(std::uint32_t rank) {
    return turns_.empty() ? nullptr : &turns_[core_number(rank)];
}

std::uint32_t Cluster::ranks_of_host_core() const {
    const std::uint32_t ranks = platform_.shared_cores ? shape_.ranks() : shape_.ranks_per_node;
    return (ranks + platform_.host_cores - 1) / platform_.host_cores;
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
