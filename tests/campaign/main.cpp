// fault-campaign: plays scenarios of work and faults on the real engine, one after the other, each from its
// seed. A scenario that goes wrong is made as small as it will go, and its trace is printed. The exit code is
// 1 then. docs/fault-campaign.md describes what is played and what is judged.
#include "base/log.h"
#include "command_line/command_line.h"
#include "shrink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace offpath::campaign {
namespace {

struct Options {
    std::uint64_t first = 1, seeds = 1000;
    double minutes = 0;
    bool trace = false, no_shrink = false;
    std::string json, corpus;
    Flaw flaw;
};

// The seed in play, for the message of a crash.
std::array<char, 64> playing{};

void crashed(int signal) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, playing.data(), std::strlen(playing.data()));
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

struct Totals {
    std::uint64_t seeds = 0, calls = 0, ended_well = 0;
    std::vector<std::uint64_t> failed;
};

void report(const Scenario& scenario, const Options& options) {
    const auto fails = [&](const Scenario& tried) { return !play(tried, options.flaw).right(); };
    const Scenario small = options.no_shrink ? scenario : shrink(scenario, fails);
    const Verdict verdict = play(small, options.flaw);
    fmt::print("seed {} goes wrong: {}\n{} of its {} steps are left:\n", scenario.seed, verdict.fault,
               small.steps.size(), scenario.steps.size());
    for (const Step& step : small.steps)
        fmt::print("  {} ({:x})\n", to_string(step.kind), step.seed);
    fmt::print("{}", verdict.trace);
    std::fflush(stdout);
}

void take(std::uint64_t seed, const Options& options, Totals& totals) {
    fmt::format_to_n(playing.data(), playing.size() - 1, "fault-campaign: crash while it played seed {}\n",
                     seed);
    const Scenario scenario = draw(seed);
    const Verdict verdict = play(scenario, options.flaw);
    ++totals.seeds;
    totals.calls += verdict.calls;
    totals.ended_well += verdict.ended_well;
    if (!verdict.right()) {
        totals.failed.push_back(seed);
        report(scenario, options);
    } else if (options.trace) {
        fmt::print("{}", verdict.trace);
    }
}

int run(const Options& options) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    Totals totals;
    if (!options.corpus.empty()) {
        std::ifstream file(options.corpus);
        for (std::string line; std::getline(file, line);)
            if (!line.empty() && line[0] != '#') take(std::stoull(line), options, totals);
        if (!file.eof()) {
            fmt::print(stderr, "fault-campaign: {}: cannot be read\n", options.corpus);
            return 2;
        }
    }
    for (std::uint64_t i = 0; options.minutes > 0 ? seconds() < options.minutes * 60 : i < options.seeds;
         ++i) {
        take(options.first + i, options, totals);
        if (totals.failed.size() >= 10) break;
    }
    fmt::print(
        "{} seeds, {} calls, of which {} ended well and the others with an error that a fault explains; "
        "{} seeds went wrong; {:.1f} s\n",
        totals.seeds, totals.calls, totals.ended_well, totals.failed.size(), seconds());
    if (!options.json.empty()) {
        std::ofstream(options.json) << nlohmann::json{{"seeds", totals.seeds},
                                                      {"first", options.first},
                                                      {"calls", totals.calls},
                                                      {"ended_well", totals.ended_well},
                                                      {"failed", totals.failed},
                                                      {"seconds", seconds()}}
                                           .dump(2)
                                    << '\n';
    }
    return totals.failed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace offpath::campaign

int main(int argc, char** argv) {
    using namespace offpath::campaign;
    Options options;
    cli::App app{
        "Plays scenarios of work and faults on the real engine, over a virtual clock, network and memory."};
    app.add_option("--first", options.first, "The first seed.")->capture_default_str();
    app.add_option("--seeds", options.seeds, "How many seeds.")->capture_default_str();
    app.add_option("--minutes", options.minutes, "Go on for so long, instead of --seeds.");
    app.add_option("--corpus", options.corpus, "Play the seeds in this file first, one a line.")
        ->check(cli::ExistingFile());
    app.add_flag("--trace", options.trace, "Print what happens in each play.");
    app.add_flag("--no-shrink", options.no_shrink, "Print a play that goes wrong whole.");
    app.add_option("--json", options.json, "Write the totals to this file.");
    const std::map<std::string, Flaw::Kind> flaws{
        {"lost", Flaw::Kind::lost}, {"twice", Flaw::Kind::twice}, {"byte", Flaw::Kind::other_byte}};
    app.add_option(
           "--flaw", options.flaw.kind,
           "Let the network do what it must not, to check this program: one message of each proxy is lost, "
           "comes twice, or has a wrong byte.")
        ->transform(cli::CheckedTransformer(flaws));
    app.add_option("--flaw-at", options.flaw.at, "Which message of a proxy.")->capture_default_str();
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;
    offpath::log::configure("fault-campaign", offpath::log::Level::off);
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE})
        std::signal(signal, crashed);
    return run(options);
}
