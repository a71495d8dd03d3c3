// offpath-bench-micro: what one operation on the device costs its host, and how fast the device copies within
// a node. It takes the options of Google Benchmark.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/clock.h"
#include "device.h"

namespace micro {

namespace {

using ::bench::now_s;

struct Buffers {
    unsigned char* from = nullptr;
    unsigned char* to = nullptr;
    std::size_t bytes = 0;

    void fill() const {
        for (std::size_t i = 0; i < bytes; ++i)
            from[i] = static_cast<unsigned char>(i * 37 + i / 4096);
        std::memset(to, 0, bytes);
    }
    bool arrived() const { return std::memcmp(from, to, bytes) == 0; }
};

bool all_arrived = true;

void check_arrival(benchmark::State& state, const Buffers& buffers) {
    if (buffers.arrived()) return;
    all_arrived = false;
    state.SkipWithError("the bytes did not arrive");
}

struct Heap {
    explicit Heap(std::size_t bytes)
        : from(static_cast<unsigned char*>(std::aligned_alloc(4096, bytes)), std::free),
          to(static_cast<unsigned char*>(std::aligned_alloc(4096, bytes)), std::free) {}
    std::unique_ptr<unsigned char, decltype(&std::free)> from, to;
};

offpath_request_h start_copy(const Device& device, const Buffers& buffers) {
    offpath_request_h request = nullptr;
    check(offpath_ialltoall(device.team(), buffers.from, buffers.to, buffers.bytes, &request),
          "offpath_ialltoall");
    return request;
}

void spin_until_done(offpath_request_h request) {
    offpath_status_t status = OFFPATH_IN_PROGRESS;
    while (status == OFFPATH_IN_PROGRESS)
        status = offpath_request_test(request);
    check(status, "offpath_request_test");
}

// Measures the time from posting a command to an awake proxy until the host sees its completion.
void round_trip(benchmark::State& state) {
    const Device device("auto");
    for (auto _ : state) {
        offpath_request_h request = nullptr;
        check(offpath_ibarrier(device.team(), &request), "offpath_ibarrier");
        spin_until_done(request);
        offpath_request_free(request);
    }
}
BENCHMARK(round_trip)->Name("command_round_trip")->UseRealTime();

// Measures the host's own time: posting, and reading the completion once it has arrived. The time in between
// does not count.
void host_cost(benchmark::State& state) {
    const Device device("auto");
    const Heap heap(4096);
    const Buffers buffers{heap.from.get(), heap.to.get(), static_cast<std::size_t>(state.range(0))};
    buffers.fill();
    for (auto _ : state) {
        const double start = now_s();
        offpath_request_h request = start_copy(device, buffers);
        const double posted = now_s();
        spin_until_done(request);
        const double done = now_s();
        offpath_request_wait(request);
        offpath_request_free(request);
        state.SetIterationTime(posted - start + now_s() - done);
    }
    check_arrival(state, buffers);
}
BENCHMARK(host_cost)->Name("post_and_complete/bytes")->Arg(8)->Arg(4096)->UseManualTime();

void copy_by_memcpy(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Heap heap(bytes);
    const Buffers buffers{heap.from.get(), heap.to.get(), bytes};
    buffers.fill();
    for (auto _ : state) {
        std::memcpy(buffers.to, buffers.from, bytes);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void measure_copies(benchmark::State& state, const Device& device, const Buffers& buffers) {
    buffers.fill();
    for (auto _ : state) {
        offpath_request_h request = start_copy(device, buffers);
        spin_until_done(request);
        offpath_request_free(request);
    }
    check_arrival(state, buffers);
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void copy_by_map(benchmark::State& state) {
    const Device device("auto");
    Buffers buffers;
    buffers.bytes = static_cast<std::size_t>(state.range(0));
    void *from = nullptr, *to = nullptr;
    check(offpath_mem_alloc(device.context(), buffers.bytes, &from), "offpath_mem_alloc");
    check(offpath_mem_alloc(device.context(), buffers.bytes, &to), "offpath_mem_alloc");
    buffers.from = static_cast<unsigned char*>(from);
    buffers.to = static_cast<unsigned char*>(to);
    measure_copies(state, device, buffers);
    offpath_mem_free(device.context(), from);
    offpath_mem_free(device.context(), to);
}

void copy_by(benchmark::State& state, const char* back_end) {
    const Device device(back_end);
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Heap heap(bytes);
    measure_copies(state, device, {heap.from.get(), heap.to.get(), bytes});
}
void copy_by_cma(benchmark::State& state) {
    copy_by(state, "cma");
}
void copy_by_staged(benchmark::State& state) {
    copy_by(state, "staged");
}

void sizes(benchmark::internal::Benchmark* benchmark) {
    for (const std::int64_t kib : {64, 1024, 16384, 65536})
        benchmark->Arg(kib << 10);
    benchmark->UseRealTime();
}
BENCHMARK(copy_by_memcpy)->Name("copy/memcpy/bytes")->Apply(sizes);
BENCHMARK(copy_by_map)->Name("copy/map/bytes")->Apply(sizes);
BENCHMARK(copy_by_cma)->Name("copy/cma/bytes")->Apply(sizes);
BENCHMARK(copy_by_staged)->Name("copy/staged/bytes")->Apply(sizes);

}  // namespace

}  // namespace micro

int main(int argc, char** argv) {
    // --json F is an abbreviation for two options of Google Benchmark.
    std::vector<std::string> words(argv, argv + argc);
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        if (words[i] != "--json") continue;
        words[i] = "--benchmark_out=" + words[i + 1];
        words[i + 1] = "--benchmark_out_format=json";
    }
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
    int code = 1;
    try {
        micro::prepare("/proc/self/exe");
        benchmark::RunSpecifiedBenchmarks();
        code = micro::all_arrived ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "offpath-bench-micro: %s\n", error.what());
    }
    benchmark::Shutdown();
    micro::clean_up();
    return code;
}
