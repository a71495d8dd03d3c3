// offpath-sim: simulates a pattern of communication on a platform, with the product's engine. Prints one JSON
// object. `offpath sim` runs it.
#include "command_line/command_line.h"
#include "schedule/goal.h"
#include "sim/profile/command.h"
#include "sim/profile/profile.h"
#include "sim/programs/measure.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace offpath::sim {
namespace {

struct Point {
    std::string pattern;
    std::uint64_t bytes = 0;
};

struct Options {
    std::vector<std::string> points;
    std::string platform, topology = "single", goal, program;
    ClusterShape shape;
    MeasureSpec measure;
    std::uint32_t proxies = 0;
    bool repeatable = false;
};

std::string contents(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw std::invalid_argument(fmt::format("{}: cannot be read", path));
    return text.str();
}

std::uint64_t available_bytes() {
    std::ifstream file("/proc/meminfo");
    for (std::string word; file >> word;) {
        std::uint64_t kib = 0;
        if (word == "MemAvailable:" && file >> kib) return kib << 10;
    }
    return UINT64_MAX;
}

// Refuses what cannot fit, before it fills the memory of the machine.
void check_memory(const ClusterShape& shape) {
    const std::uint64_t ranks = shape.ranks();
    const std::uint64_t workers = shape.engine == EngineKind::host ? ranks : shape.nodes * shape.proxies;
    // Measured with 1,024 proxies of one rank each: what each keeps of each other one, its rank's team
    // included.
    constexpr std::uint64_t pair = 240, member = 12;
    const std::uint64_t needed = workers * workers * pair + ranks * ranks * member;
    if (const std::uint64_t available = available_bytes(); needed > available)
        throw std::invalid_argument(
            fmt::format("{} ranks on {} nodes need at least {} MiB; this machine has {} MiB available", ranks,
                        shape.nodes, needed >> 20, available >> 20));
}

void write_goal(const std::string& path, Job& job, const MeasureSpec& spec) {
    std::vector<schedule::Schedule> schedules;
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
        const auto step = make_step(spec.pattern, job, rank, spec.bytes);
        if (step->schedule() == nullptr)
            throw std::invalid_argument(fmt::format("--goal: {} is no schedule", spec.pattern));
        schedules.push_back(*step->schedule());
    }
    std::ofstream file(path);
    file << schedule::to_goal(schedules);
    if (!file.flush()) throw std::invalid_argument(fmt::format("--goal: {}: cannot be written", path));
}

nlohmann::json simulate(const Options& options, const Platform& platform) {
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t before = mallinfo2().uordblks;
    Cluster cluster(platform, options.shape);
    const std::size_t setup_bytes = mallinfo2().uordblks - before;
    const double setup = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Job job(cluster);
    if (!options.goal.empty()) write_goal(options.goal, job, options.measure);
    const Measured measured = measure(job, options.measure);
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

    nlohmann::json result{
        {"platform", platform.name},
        {"nodes", options.shape.nodes},
        {"ranks", options.shape.ranks()},
        {"pattern", options.measure.pattern},
        {"bytes", options.measure.bytes},
        {"engine", options.shape.engine == EngineKind::host ? "host" : "offpath"},
        {"topology", options.topology},
        {"time_s", measured.pure_s},
        {"compute_s", measured.compute_s},
        {"total_s", measured.total_s},
        {"post_s", measured.post_s},
        {"overlap_percent", measured.overlap_percent},
        {"virtual_s", seconds_of(cluster.queue().now())},
        {"events", cluster.queue().events()},
        {"messages", cluster.network().messages()},
        {"wire_bytes", cluster.network().bytes_between_nodes()},
        {"connections", cluster.connections()},
        {"workers_busy_s", seconds_of(cluster.workers_busy())},
        {"busiest_port_s", seconds_of(cluster.network().busiest_port())},
    };
    if (options.shape.moves_data) result["verified"] = measured.right;
    if (!options.repeatable) {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        result["wall_s"] = wall;
        result["setup_s"] = setup;
        result["setup_bytes"] = setup_bytes;
        result["events_per_s"] = static_cast<double>(cluster.queue().events()) / wall;
        result["peak_rss_bytes"] = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
    }
    return result;
}

Point parse_point(const std::string& text) {
    const std::size_t colon = text.find(':');
    Point point{text.substr(0, colon), 0};
    const std::string bytes = colon == std::string::npos ? std::string() : text.substr(colon + 1);
    if (bytes.empty() || bytes.size() > 11 || bytes.find_first_not_of("0123456789") != std::string::npos)
        throw std::invalid_argument(fmt::format("--points \"{}\": write PATTERN:BYTES", text));
    point.bytes = std::stoull(bytes);
    return point;
}

// Each point in a simulation of its own, so that none depends on those before it.
nlohmann::json simulate_points(const Options& options, const Platform& platform) {
    nlohmann::json rows = nlohmann::json::array();
    for (const std::string& text : options.points) {
        const Point point = parse_point(text);
        Options one = options;
        one.measure.pattern = point.pattern;
        one.measure.bytes = point.bytes;
        rows.push_back(simulate(one, platform));
    }
    return {{"rows", rows}};
}

nlohmann::json run_what(const Options& options, const Platform& platform) {
    if (!options.program.empty()) return replay_program(options.program, platform, options.shape);
    return options.points.empty() ? simulate(options, platform) : simulate_points(options, platform);
}

void add_options(cli::App& app, Options& options) {
    const std::map<std::string, EngineKind> engines{{"host", EngineKind::host},
                                                    {"offpath", EngineKind::offpath}};
    const std::map<std::string, Sharing> sharings{{"fifo", Sharing::fifo}, {"fair", Sharing::fair}};
    std::vector<std::string> patterns(pattern_names().begin(), pattern_names().end());
    app.add_option("--platform", options.platform, "File with the figures of the machine")->required();
    app.add_option("--nodes", options.shape.nodes)->check(cli::Range(1, 65536))->capture_default_str();
    app.add_option("--ranks-per-node", options.shape.ranks_per_node)
        ->check(cli::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--proxies", options.proxies,
                   "Proxies of a node; 0: one a device core, at most one a rank")
        ->check(cli::Range(0, 1024));
    auto* what = app.add_option_group("what");
    what->require_option(1);
    what->add_option("--pattern", options.measure.pattern)->check(cli::IsMember(patterns));
    what->add_option("--program", options.program, "Replay the profile in this folder");
    what->add_option("--points", options.points, "PATTERN:BYTES, with commas, one after the other")
        ->delimiter(',');
    app.add_flag("--alone", options.measure.only_alone, "Measure the pattern alone, without computations");
    app.add_option("--pause", options.measure.pause_s, "Seconds of rest before each repetition")
        ->check(cli::Range(0.0, 1e4));
    app.add_option("--bytes", options.measure.bytes)
        ->check(cli::Range(std::uint64_t{0}, std::uint64_t{1} << 36));
    app.add_option("--engine", options.shape.engine)->transform(cli::CheckedTransformer(engines));
    app.add_option("--topology", options.topology)->capture_default_str();
    app.add_option("--sharing", options.shape.sharing)->transform(cli::CheckedTransformer(sharings));
    app.add_option("--iterations", options.measure.iterations)
        ->check(cli::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--compute", options.measure.compute_s,
                   "Seconds of each rank; default: as the pattern alone")
        ->check(cli::Range(0.0, 1e4));
    app.add_option("--skew", options.measure.skew_s, "Seconds between the first and the last rank to begin")
        ->check(cli::Range(0.0, 1e4));
    app.add_option("--noise", options.measure.noise, "Standard deviation of computations, as a share")
        ->check(cli::Range(0.0, 1.0));
    app.add_option("--seed", options.shape.seed)->capture_default_str();
    app.add_option("--goal", options.goal, "Also write the pattern in GOAL, which LogGOPSim reads");
    app.add_flag("--verify", options.shape.moves_data, "Move real bytes, and check them");
    app.add_flag("--repeatable", options.repeatable, "Leave out how long the simulation itself took");
}

int run(int argc, char** argv) {
    cli::App app("Simulates a pattern of communication on a platform, with offpath's engine.");
    Options options;
    add_options(app, options);
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;
    try {
        const Platform platform = parse_platform(options.platform, contents(options.platform));
        options.shape.topology = parse_topology(options.topology, options.shape.nodes);
        options.shape.proxies = options.proxies > 0
                                    ? options.proxies
                                    : std::min(platform.device_cores, options.shape.ranks_per_node);
        check_memory(options.shape);
        const nlohmann::json result = run_what(options, platform);
        std::puts(result.dump(1).c_str());
        return result.value("verified", true) ? 0 : 1;
    } catch (const PlatformError& error) {
        std::fprintf(stderr, "offpath-sim: %s\n", error.what());
    } catch (const ProfileError& error) {
        std::fprintf(stderr, "offpath-sim: %s\n", error.what());
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "offpath-sim: %s\n", error.what());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "offpath-sim: %s\n", error.what());
        return 3;
    }
    return 2;
}

}  // namespace
}  // namespace offpath::sim

int main(int argc, char** argv) {
    return offpath::sim::run(argc, argv);
}
