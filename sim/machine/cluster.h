// Cluster: the nodes of a simulation with their cores, their ranks, and the workers that serve these.
//
// With Engine::offpath, each node has `proxies` workers on its device cores, and each rank is bound to one of
// them. With Engine::host, each rank has a worker of its own on its host core, which moves only while the
// rank is in a call: the program without offload. The engines, the schedules and the choice of algorithms are
// those of the product in both cases. With `keeps_libraries`, ranks of Engine::offpath have libraries too,
// for what stays on the host.
//
// Ownership: owns everything. Threads: one.
#pragma once

#include "sim/machine/short_way.h"
#include "sim/machine/sim_memory.h"
#include "sim/machine/sim_transport.h"
#include "sim/machine/worker.h"
#include "sim/servers/turns.h"

#include <deque>
#include <memory>
#include <vector>

namespace offpath::sim {

enum class EngineKind : std::uint8_t { host, offpath };

struct ClusterShape {
    std::uint32_t nodes = 2, ranks_per_node = 1;
    std::uint32_t proxies = 1;  // of a node
    EngineKind engine = EngineKind::offpath;
    bool keeps_libraries = false;
    TopologyShape topology;
    Sharing sharing = Sharing::fifo;
    bool moves_data = false;  // else only sizes travel, and no buffer has memory of its own
    std::uint64_t seed = 1;
    engine::Config engine_config;

    std::uint32_t ranks() const { return nodes * ranks_per_node; }
    bool has_libraries() const { return keeps_libraries || engine == EngineKind::host; }
};

class Cluster {
  public:
    Cluster(const Platform& platform, const ClusterShape& shape);
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    const Platform& platform() const { return platform_; }
    const ClusterShape& shape() const { return shape_; }
    EventQueue& queue() { return queue_; }
    Network& network() { return *network_; }
    bool moves_data() const { return shape_.moves_data; }
    ShortWay& short_way() { return short_way_; }
    engine::JobId job() const { return {1, shape_.seed}; }
    Pool<Arrival>& arrivals() { return arrivals_; }
    Pool<Announced>& announced() { return announced_; }

    Worker& worker(std::uint32_t number) { return *workers_[number]; }
    Worker& worker_of(std::uint32_t rank) { return *workers_[worker_number(rank)]; }
    std::uint32_t node_of(std::uint32_t rank) const { return rank / shape_.ranks_per_node; }
    Core& host_core_of(std::uint32_t rank);
    // Null: the ranks of a core do not take turns.
    Turns* turns_of(std::uint32_t rank);
    // Whether commands and completions are messages, as payload is: the device is behind a stream.
    bool commands_are_messages() const {
        return platform_.memory == HostMemoryKind::staged && platform_.protocol == Protocol::stream;
    }
    Agent& agent_of(std::uint32_t rank) { return memories_[rank]->agent(); }
    // Of a message to or from the device, beside its bytes.
    Time bus_latency() const { return from_seconds(platform_.bus_latency_s); }
    // The rank as its core knows it: by its memory.
    Core::Process process_of(std::uint32_t rank) const { return memories_[rank].get(); }
    // How many ranks have one core.
    std::uint32_t ranks_of_host_core() const;
    bool host_core_is_shared() const { return ranks_of_host_core() > 1; }
    engine::Session& session_of(std::uint32_t rank) { return *sessions_[rank]; }
    // The team of all ranks, and its number.
    static constexpr std::uint64_t world_team = 1;
    engine::Team& team_of(std::uint32_t rank) { return *teams_[rank]; }

    // Only if the shape has libraries. With Engine::host they are the workers themselves.
    std::uint32_t rank_of_library(std::uint32_t number) const { return number - first_library(); }
    Worker& library_of(std::uint32_t rank) { return *workers_[first_library() + rank]; }
    engine::Session& library_session_of(std::uint32_t rank) { return *library_sessions()[rank]; }
    engine::Team& library_team_of(std::uint32_t rank) {
        return *(library_teams_.empty() ? teams_ : library_teams_)[rank];
    }

    // Addresses for a buffer without data of its own, the same for all that ask.
    std::byte* empty(std::size_t bytes);

    std::size_t connections() const;
    // Time that workers have used of their cores, in all.
    Time workers_busy() const;

  private:
    std::uint32_t worker_number(std::uint32_t rank) const;
    std::uint32_t first_library() const {
        return shape_.engine == EngineKind::host ? 0 : shape_.nodes * shape_.proxies;
    }
    std::vector<engine::Session*>& library_sessions() {
        return library_sessions_.empty() ? sessions_ : library_sessions_;
    }
    // Of the host cores.
    std::size_t core_number(std::uint32_t rank) const;
    Core& device_core(std::uint32_t node, std::uint32_t proxy);
    void make_workers();
    // One session a rank, at the proxies or at the libraries. Those of one kind know each other.
    void open_sessions(bool of_libraries, std::vector<engine::Session*>& sessions,
                       std::vector<engine::Team*>& teams);

    const Platform platform_;
    const ClusterShape shape_;
    EventQueue queue_;
    Pool<Arrival> arrivals_;
    Pool<Announced> announced_;
    std::unique_ptr<Network> network_;
    ShortWay short_way_{*this};
    std::deque<Core> host_cores_, device_cores_;
    std::deque<Turns> turns_;                         // of each host core, or none
    std::deque<Link> buses_;                          // of each node: to the device, to the host
    std::vector<std::unique_ptr<EmptyRange>> empty_;  // each larger than the one before
    std::vector<std::unique_ptr<SimMemory>> memories_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<engine::Session*> sessions_, library_sessions_;
    std::vector<engine::Team*> teams_, library_teams_;
};

}  // namespace offpath::sim
