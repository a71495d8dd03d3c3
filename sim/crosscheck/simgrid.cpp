// offpath-goal-simgrid: plays a GOAL file on SimGrid, as a second opinion on what offpath-sim says of the
// same pattern. It uses nothing of the engine and of offpath-sim. It is built where SimGrid is installed, and
// is the only program that links SimGrid, whose licence in Debian is the GPL.
//
// The machine is that of LogGOPSim: a core for each rank, which takes the overhead o for each message sent
// and received and does one thing after the other; links of 1 / G bytes a second to and from a switch; the
// latency L on the way. From S bytes on, a message starts when its receive is there, and its send ends with
// it.
#include "command_line/command_line.h"
#include "sim/crosscheck/goal_file.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include <simgrid/s4u.hpp>

namespace offpath::sim {
namespace {

namespace s4u = simgrid::s4u;

struct Figures {
    double latency_ns = 2000, overhead_ns = 1000, ns_per_byte = 1;
    std::uint64_t rendezvous_bytes = 8192;
};

class Player {
  public:
    Player(const GoalJob& job, const Figures& figures) : job_(job), figures_(figures), cores_(job.ranks) {
        left_.reserve(job.ops.size());
        for (const GoalOp& op : job.ops)
            left_.push_back(op.waits_for);
        states_.resize(job.ops.size());
        s4u::NetZone* zone = s4u::create_star_zone("machine");
        for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
            hosts_.push_back(zone->create_host(fmt::format("rank{}", rank), 1e9));  // one unit a nanosecond
            const auto* link =
                zone->create_split_duplex_link(fmt::format("link{}", rank), 1e9 / figures.ns_per_byte)
                    ->set_latency(figures.latency_ns * 0.5e-9)
                    ->seal();
            zone->add_route(hosts_.back()->get_netpoint(), nullptr, nullptr, nullptr,
                            {{link, s4u::LinkInRoute::Direction::UP}}, true);
        }
        zone->seal();
    }

    // Seconds of virtual time until the last operation ends. Throws std::runtime_error if operations are
    // left.
    double run(const s4u::Engine& engine) {
        s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { completed(activity); });
        for (std::uint32_t id = 0; id < job_.ops.size(); ++id)
            if (left_[id] == 0) begin(id);
        engine.run();
        std::size_t open = 0;
        for (const State& state : states_)
            open += !state.ended;
        if (open > 0) throw std::runtime_error(fmt::format("{} operations wait for each other", open));
        return s4u::Engine::get_clock();
    }
    std::uint64_t activities() const { return activities_; }

  private:
    enum class Phase : std::uint8_t { core, wire };
    struct State {
        bool posted = false;   // a receive has begun; a send's core time is over
        bool arrived = false;  // of a receive: its message is here
        bool ended = false;
    };

    bool by_rendezvous(const GoalOp& op) const { return op.amount >= figures_.rendezvous_bytes; }

    // All that must end before has ended.
    void begin(std::uint32_t id) {
        const GoalOp& op = job_.ops[id];
        if (op.kind != GoalKind::recv) return compute(id);
        states_[id].posted = true;
        if (states_[id].arrived)
            compute(id);
        else if (by_rendezvous(op) && states_[op.match].posted)
            travel(op.match);
    }

    // Queues the operation's time on its rank's core.
    void compute(std::uint32_t id) {
        auto& queue = cores_[job_.ops[id].rank];
        queue.push_back(id);
        if (queue.size() == 1) occupy(id);
    }
    void occupy(std::uint32_t id) {
        const GoalOp& op = job_.ops[id];
        const double ns = op.kind == GoalKind::calc ? static_cast<double>(op.amount) : figures_.overhead_ns;
        // SimGrid ends an amount of 0 at once, within start(), and would call back from there.
        const auto exec = s4u::Exec::init()->set_flops_amount(std::max(ns, 1e-3))->set_host(hosts_[op.rank]);
        watch(*exec, id, Phase::core);
        exec->start();
    }
    void travel(std::uint32_t id) {
        const GoalOp& op = job_.ops[id];
        const auto comm = s4u::Comm::sendto_init(hosts_[op.rank], hosts_[op.peer]);
        comm->set_payload_size(std::max<std::uint64_t>(op.amount, 1));
        watch(*comm, id, Phase::wire);
        comm->start();
    }
    void watch(s4u::Activity& activity, std::uint32_t id, Phase phase) {
        ++activities_;
        activity.set_data(
            reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr): SimGrid keeps a pointer
                (static_cast<std::uintptr_t>(id) << 1 | static_cast<std::uintptr_t>(phase == Phase::wire)) +
                2));
        running_.emplace(&activity, &activity);
    }

    void completed(const s4u::Activity& activity) {
        // SimGrid still uses the activity after this call, so it goes with the next one that ends.
        over_ = std::move(running_.extract(&activity).mapped());
        const std::uintptr_t data = reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 2;
        const auto id = static_cast<std::uint32_t>(data >> 1);
        if ((data & 1) != 0)
            arrived(id);
        else
            computed(id);
    }
    void computed(std::uint32_t id) {
        const GoalOp& op = job_.ops[id];
        auto& queue = cores_[op.rank];
        queue.pop_front();
        if (!queue.empty()) occupy(queue.front());
        if (op.kind == GoalKind::send) {
            states_[id].posted = true;
            if (!by_rendezvous(op)) {
                travel(id);
                end(id);
            } else if (states_[op.match].posted) {
                travel(id);
            }
            return;
        }
        end(id);
    }
    void arrived(std::uint32_t send) {
        const std::uint32_t recv = job_.ops[send].match;
        states_[recv].arrived = true;
        if (by_rendezvous(job_.ops[send])) end(send);
        if (states_[recv].posted) compute(recv);
    }
    void end(std::uint32_t id) {
        states_[id].ended = true;
        for (const std::uint32_t after : job_.ops[id].successors)
            if (--left_[after] == 0) begin(after);
    }

    const GoalJob& job_;
    Figures figures_;
    std::vector<s4u::Host*> hosts_;
    std::vector<std::deque<std::uint32_t>> cores_;  // operations by rank; the first one computes
    std::vector<std::uint32_t> left_;
    std::vector<State> states_;
    std::uint64_t activities_ = 0;
    std::unordered_map<const s4u::Activity*, s4u::ActivityPtr> running_;  // nobody else holds them
    s4u::ActivityPtr over_;
};

int play(const std::string& path, const Figures& figures) {
    const GoalJob job = read_goal(path);
    // Plain fluid sharing, without the corrections for TCP that SimGrid's default model makes.
    std::vector<std::string> settings = {"offpath-goal-simgrid", "--log=xbt_cfg.threshold:error",
                                         "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0",
                                         "--cfg=network/crosstraffic:0"};
    std::vector<char*> arguments;
    for (std::string& setting : settings)
        arguments.push_back(setting.data());
    arguments.push_back(nullptr);
    int count = static_cast<int>(settings.size());
    const s4u::Engine engine(&count, arguments.data());
    const auto begin = std::chrono::steady_clock::now();
    Player player(job, figures);
    const double time_s = player.run(engine);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    const nlohmann::ordered_json row = {
        {"ranks", job.ranks},
        {"time_s", time_s},
        {"events", player.activities()},
        {"wall_s", wall.count()},
        {"events_per_s", static_cast<double>(player.activities()) / wall.count()}};
    fmt::print("{}\n", row.dump());
    return 0;
}

}  // namespace
}  // namespace offpath::sim

int main(int argc, char** argv) {
    cli::App app(
        "Plays a GOAL file, such as `offpath sim --goal` writes, on SimGrid. Prints one JSON object.");
    std::string path;
    offpath::sim::Figures figures;
    app.add_option("file", path, "GOAL file")->required();
    const auto amount = cli::Range(0.0, 1e12);
    app.add_option("-L,--latency-ns", figures.latency_ns, "Latency of a message")->check(amount);
    app.add_option("-o,--overhead-ns", figures.overhead_ns, "Core time of each message sent and received")
        ->check(amount);
    app.add_option("-G,--ns-per-byte", figures.ns_per_byte, "Time of a byte on a link")
        ->check(cli::Range(1e-6, 1e6));
    app.add_option("-S,--rendezvous-bytes", figures.rendezvous_bytes,
                   "Messages from this size on wait for their receive");
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;
    try {
        return offpath::sim::play(path, figures);
    } catch (const std::exception& error) {
        fmt::print(stderr, "offpath-goal-simgrid: {}\n", error.what());
        return 1;
    }
}
