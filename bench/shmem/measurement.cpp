#include "measurement.h"

#include <shmem.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "common/clock.h"
#include "common/compute.h"

namespace shmem_bench {

namespace {

alignas(4096) char static_remote[largest_bytes];
alignas(4096) char static_local[largest_bytes];
alignas(64) long static_word;

using ::bench::now_s;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// Returns the seconds of one call of `step`: the median over batches, each of which takes a tenth of the
// time.
template <typename Step>
double time_of(double seconds, Step step) {
    constexpr int batches = 10;
    const double begun = now_s();
    for (int i = 0; i < 3; ++i)
        step();
    const double once = std::max((now_s() - begun) / 3, 1e-9);
    const auto count = static_cast<int>(std::clamp(seconds / batches / once, 1.0, 1e6));
    std::vector<double> each;
    const double started = now_s();
    do {
        const double from = now_s();
        for (int i = 0; i < count; ++i)
            step();
        each.push_back((now_s() - from) / count);
    } while (static_cast<int>(each.size()) < batches && (now_s() - started < 2 * seconds || each.size() < 3));
    return median(each);
}

void start(const Pair& pair, const std::string& op, std::size_t bytes) {
    if (op == "put") {
        shmem_putmem_nbi(pair.remote, pair.local, bytes, pair.target);
    } else {
        shmem_getmem_nbi(pair.local, pair.remote, bytes, pair.target);
    }
}

std::uint64_t units_for(double seconds) {
    constexpr std::uint64_t tried = 256;
    const double took = time_of(1e-3, [] { bench::compute(tried); });
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(seconds / took * static_cast<double>(tried) + 0.5));
}

}  // namespace

Pair::Pair(Memory memory) : target(shmem_n_pes() - 1) {
    if (memory == Memory::static_data) {
        remote = static_remote;
        local = static_local;
        word = &static_word;
    } else {
        remote = static_cast<char*>(shmem_align(4096, largest_bytes));
        local = static_cast<char*>(shmem_align(4096, largest_bytes));
        word = static_cast<long*>(shmem_align(64, sizeof(long)));
        if (remote == nullptr || local == nullptr || word == nullptr) throw std::bad_alloc();
    }
    std::memset(remote, 0, largest_bytes);
    std::memset(local, 0, largest_bytes);
    *word = 0;
    shmem_barrier_all();
}

double Overlap::percent() const {
    return pure_s > 0 ? std::clamp(100.0 * (1.0 - (total_s - compute_s) / pure_s), 0.0, 100.0) : 0.0;
}

const std::vector<std::string>& transfers() {
    static const std::vector<std::string> names = {"put", "get"};
    return names;
}

const std::vector<std::string>& atomics() {
    static const std::vector<std::string> names = {"fetch_add", "add", "compare_swap"};
    return names;
}

bool is_transfer(const std::string& op) {
    return std::find(transfers().begin(), transfers().end(), op) != transfers().end();
}

double latency(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings) {
    if (op == "put")
        return time_of(settings.seconds, [&] {
            shmem_putmem(pair.remote, pair.local, bytes, pair.target);
            shmem_quiet();
        });
    return time_of(settings.seconds, [&] { shmem_getmem(pair.local, pair.remote, bytes, pair.target); });
}

double rate(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings) {
    constexpr std::size_t most_in_flight = std::size_t{16} << 20;
    const int window = std::clamp(static_cast<int>(most_in_flight / bytes), 1, settings.window);
    const double seconds = time_of(settings.seconds, [&] {
        for (int i = 0; i < window; ++i)
            start(pair, op, bytes);
        shmem_quiet();
    });
    return window / seconds;
}

Overlap overlap(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings) {
    std::vector<double> pure, computing, total;
    const auto transfer = [&](std::size_t size) {
        start(pair, op, size);
        shmem_quiet();
    };
    const auto empty_links = [&] {
        if (settings.before_bytes > 0) transfer(settings.before_bytes);
    };
    // The three are measured in turn, so that a disturbance affects all of them. Every transfer follows a
    // computation, so that links are idle for the same time before each.
    const auto measure = [&](std::uint64_t units, int repeats) {
        for (auto* values : {&pure, &computing, &total})
            values->clear();
        for (int i = 0; i < repeats; ++i) {
            const double from = now_s();
            bench::compute(units);
            const double computed = now_s();
            empty_links();
            const double emptied = now_s();
            transfer(bytes);
            const double transferred = now_s();
            bench::compute(units);
            empty_links();
            const double again = now_s();
            start(pair, op, bytes);
            bench::compute(units);
            shmem_quiet();
            computing.push_back(computed - from);
            pure.push_back(transferred - emptied);
            total.push_back(now_s() - again);
        }
    };
    const double alone = time_of(settings.seconds / 4, [&] { transfer(bytes); });
    const auto repeats = static_cast<int>(std::clamp(settings.seconds / alone, 10.0, 1000.0));
    // A computation that is shorter than the transfer cannot hide it, and the core's speed changes. So the
    // measurement is repeated if the two times differ too much.
    std::uint64_t units = units_for(alone);
    measure(units, 5);
    for (int attempt = 0; attempt < 5; ++attempt) {
        const double fit = median(pure) / median(computing);
        units =
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(units) * fit + 0.5));
        measure(units, repeats);
        if (std::abs(median(pure) / median(computing) - 1) < 0.05) break;
    }
    return {median(pure), median(computing), median(total)};
}

bool verify(const Pair& pair, const std::string& op, std::size_t bytes) {
    const auto value = [bytes](std::size_t i) { return static_cast<char>(i * 31 + bytes * 7 + (i >> 8)); };
    for (std::size_t i = 0; i < bytes; ++i)
        pair.local[i] = value(i);
    shmem_putmem(pair.remote, pair.local, bytes, pair.target);
    shmem_quiet();
    if (op == "put") {
        // Repeat this with the call that is measured, and with the bytes in reverse order.
        std::reverse(pair.local, pair.local + bytes);
        start(pair, op, bytes);
        shmem_quiet();
    }
    std::memset(pair.local, 0, bytes);
    start(pair, "get", bytes);
    shmem_quiet();
    for (std::size_t i = 0; i < bytes; ++i)
        if (pair.local[i] != (op == "put" ? value(bytes - 1 - i) : value(i))) return false;
    return true;
}

double atomic_latency(const Pair& pair, const std::string& op, const Settings& settings) {
    if (op == "fetch_add")
        return time_of(settings.seconds, [&] { shmem_long_atomic_fetch_add(pair.word, 1, pair.target); });
    if (op == "compare_swap")
        return time_of(settings.seconds,
                       [&] { shmem_long_atomic_compare_swap(pair.word, 0, 0, pair.target); });
    return time_of(settings.seconds, [&] {
        shmem_long_atomic_add(pair.word, 1, pair.target);
        shmem_quiet();
    });
}

double atomic_rate(const Pair& pair, const std::string& op, const Settings& settings) {
    if (op != "add") return 1.0 / atomic_latency(pair, op, settings);
    const double seconds = time_of(settings.seconds, [&] {
        for (int i = 0; i < settings.window; ++i)
            shmem_long_atomic_add(pair.word, 1, pair.target);
        shmem_quiet();
    });
    return settings.window / seconds;
}

bool verify_atomic(const Pair& pair, const std::string& op) {
    constexpr long first = 1000;
    shmem_long_atomic_set(pair.word, first, pair.target);
    shmem_quiet();
    if (op == "compare_swap") {
        return shmem_long_atomic_compare_swap(pair.word, first + 1, 5, pair.target) == first &&
               shmem_long_atomic_compare_swap(pair.word, first, 5, pair.target) == first &&
               shmem_long_atomic_fetch(pair.word, pair.target) == 5;
    }
    if (op == "fetch_add")
        return shmem_long_atomic_fetch_add(pair.word, 7, pair.target) == first &&
               shmem_long_atomic_fetch(pair.word, pair.target) == first + 7;
    shmem_long_atomic_add(pair.word, 7, pair.target);
    shmem_quiet();
    return shmem_long_atomic_fetch(pair.word, pair.target) == first + 7;
}

}  // namespace shmem_bench
