// bench-memory: how fast a proxy moves memory of host ranks through each back end, compared with one memcpy.
#include "command_line/command_line.h"
#include "host_rank.h"
#include "memory/copy.h"
#include "table.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <sys/mman.h>

namespace offpath::memory::bench {
namespace {

constexpr std::size_t largest = std::size_t{64} << 20;
constexpr std::size_t chunk_bytes = 256 << 10;

// Returns private memory of this process, with its pages present.
std::byte* private_memory() {
    void* const memory = mmap(nullptr, largest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory");
    std::memset(memory, 1, largest);
    return static_cast<std::byte*>(memory);
}

template <typename Copy>
void add(const char* name, const std::vector<std::size_t>& sizes, double seconds, int runs, Copy&& copy) {
    auto* const benchmark = benchmark::RegisterBenchmark(name, [copy](benchmark::State& state) {
        const auto bytes = static_cast<std::size_t>(state.range(0));
        for (auto _ : state)
            copy(bytes);
        state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
    });
    for (const std::size_t size : sizes)
        benchmark->Arg(static_cast<std::int64_t>(size));
    benchmark->UseRealTime()->MinTime(seconds)->Repetitions(runs)->ReportAggregatesOnly();
}

void measure(const std::vector<std::size_t>& sizes, double seconds, int runs, const std::string& json) {
    HostRank host(largest);
    std::byte* const from = private_memory();
    std::byte* const to = private_memory();
    add("memcpy", sizes, seconds, runs, [=](std::size_t bytes) {
        std::memcpy(to, from, bytes);
        benchmark::ClobberMemory();
    });
    add("map", sizes, seconds, runs, [&host](std::size_t bytes) {
        const HostRange source = host.shared(0, bytes), target = host.shared(1, bytes);
        copy_bytes(host.mapped().direct(target, 0, bytes), host.mapped().direct(source, 0, bytes), bytes);
        benchmark::ClobberMemory();
    });
    if (host.cma() != nullptr)
        add("cma", sizes, seconds, runs,
            [&host](std::size_t bytes) { host.copy(*host.cma(), bytes, chunk_bytes); });
    add("staged", sizes, seconds, runs,
        [&host](std::size_t bytes) { host.copy(host.staged(), bytes, chunk_bytes); });

    std::vector<std::string> arguments{"bench-memory", "--benchmark_enable_random_interleaving=true"};
    if (!json.empty()) {
        arguments.push_back("--benchmark_out=" + json);
        arguments.push_back("--benchmark_out_format=json");
    }
    std::vector<char*> argv(arguments.size());
    std::transform(arguments.begin(), arguments.end(), argv.begin(),
                   [](std::string& argument) { return argument.data(); });
    int argc = static_cast<int>(argv.size());
    benchmark::Initialize(&argc, argv.data());
    Table table({"memcpy", "map", "cma", "staged"});
    benchmark::RunSpecifiedBenchmarks(&table);
}

int run(int argc, char** argv) {
    cli::App app(
        "Copies memory of one host rank to another's through each back end of a proxy, beside one memcpy of "
        "this process. The host rank is a process of its own.");
    std::string json;
    double seconds = 0.05;
    int runs = 5;
    std::vector<std::size_t> sizes{4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
    app.add_option("--json", json, "Write the results to this file, in Google Benchmark's format");
    app.add_option("--sizes", sizes, "Bytes to copy (suffixes K, M), 1 to 64M")
        ->delimiter(',')
        ->transform(cli::AsSizeValue())
        ->check(cli::Range(std::size_t{1}, largest));
    app.add_option("--seconds", seconds, "Least time of a run")->check(cli::Range(0.001, 10.0));
    app.add_option("--runs", runs, "Runs of each, interleaved; the median counts")->check(cli::Range(1, 100));
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;
    measure(sizes, seconds, runs, json);
    return 0;
}

}  // namespace
}  // namespace offpath::memory::bench

int main(int argc, char** argv) {
    try {
        return offpath::memory::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench-memory: %s\n", error.what());
        return 1;
    }
}
