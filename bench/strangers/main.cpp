// bench-strangers: what strangers and greedy clients do to a daemon, all at once: idle connections, malformed
// and foreign sessions, and sessions at their limits. scripts/bench-strangers.py runs a job beside it.
//
// It prints "ready" when everything is there, goes on until its input ends, and then prints what it did, as
// JSON.
#include "command_line/command_line.h"
#include "common/clock.h"
#include "greedy.h"
#include "nuisance.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace {

using namespace strangers;

void allow_descriptors() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

bool input_has_ended(int wait_ms) {
    pollfd entry{STDIN_FILENO, POLLIN, 0};
    char letter = 0;
    return poll(&entry, 1, wait_ms) > 0 && read(STDIN_FILENO, &letter, 1) <= 0;
}

}  // namespace

int main(int argc, char** argv) try {
    Target target;
    unsigned malformed = 100;
    double over_s = 5;
    std::size_t idle = 1000;
    bool greedy = true;
    cli::App app("Strangers and greedy clients of an offpathd. Ends when its input ends.");
    app.add_option("--dir", target.directory, "the daemon's session directory")->required();
    app.add_option("--address", target.address, "where it listens, ADDR:PORT")->required();
    app.add_option("--key-file", target.key_file, "its key")->required();
    app.add_option("--idle", idle, "connections that say nothing; they are made again when they are dropped");
    app.add_option("--malformed", malformed, "malformed and foreign sessions");
    app.add_option("--over", over_s, "seconds over which these are spread");
    app.add_flag("!--not-greedy", greedy, "without sessions at their limits");
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;

    allow_descriptors();
    GreedySessions sessions;
    if (greedy) sessions.fill(target);
    IdleConnections connections(target, idle);
    Malformed sender(target);
    connections.tend();
    std::puts("ready");
    std::fflush(stdout);
    const double begin = bench::now_s();
    constexpr int step_ms = 50;
    while (!input_has_ended(step_ms)) {
        const double share = std::min(1.0, (bench::now_s() - begin) / over_s);
        while (sender.sent() < static_cast<unsigned>(share * malformed))
            sender.send_next();
        connections.tend();
    }
    nlohmann::ordered_json result;
    result["malformed"] = sender.sent();
    result["malformed_by_kind"] = sender.by_kind();
    result["idle_now"] = connections.open();
    result["idle_opened"] = connections.opened();
    result["at_limits"] = sessions.held();
    std::puts(result.dump().c_str());
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "bench-strangers: %s\n", error.what());
    return 1;
}
