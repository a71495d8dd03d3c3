// What PE 0 measures of puts, gets and atomic operations on the last PE, which waits in a barrier. Calls of
// OpenSHMEM 1.4 alone, so that any library of it can be measured.
//
// One thread. A Pair's memory is symmetric: of the heap, or static data of this program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shmem_bench {

enum class Memory { heap, static_data };
inline constexpr std::size_t largest_bytes = std::size_t{4} << 20;

// What operations go to and come from.
struct Pair {
    explicit Pair(Memory memory);  // collective
    int target = 0;
    char *remote = nullptr, *local = nullptr;
    long* word = nullptr;
};

struct Settings {
    double seconds = 0.05;  // of measuring each value
    int window = 64;        // operations before a quiet, where their number counts
    // Moved right before each transfer whose overlap is measured, so that a link that lets bursts through at
    // once has none left: else a message that is shorter than the burst meets it full or empty as it comes.
    std::size_t before_bytes = 0;
};

struct Overlap {
    double pure_s = 0, compute_s = 0, total_s = 0;
    double percent() const;
};

// "put" or "get".
bool is_transfer(const std::string& op);
const std::vector<std::string>& transfers();
const std::vector<std::string>& atomics();

// One operation after the other, each complete: put and quiet, get.
double latency(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings);
// Operations per second, a window of non-blocking ones and a quiet at a time.
double rate(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings);
// A non-blocking operation, computation that takes as long as it does alone, quiet.
Overlap overlap(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings);
// Whether the bytes arrive, all of them, unchanged.
bool verify(const Pair& pair, const std::string& op, std::size_t bytes);

// Each complete: fetching ones by their result, others by a quiet.
double atomic_latency(const Pair& pair, const std::string& op, const Settings& settings);
double atomic_rate(const Pair& pair, const std::string& op, const Settings& settings);
bool verify_atomic(const Pair& pair, const std::string& op);

}  // namespace shmem_bench
