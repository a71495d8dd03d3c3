// What PE 0 measures of puts, gets and atomic operations on the last PE, which waits in a barrier. It uses
// only calls of OpenSHMEM 1.4, so it can measure any library.
//
// One thread. A Pair's memory is symmetric: on the heap, or static data of this program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shmem_bench {

enum class Memory { heap, static_data };
inline constexpr std::size_t largest_bytes = std::size_t{4} << 20;

// The buffers of the operations.
struct Pair {
    explicit Pair(Memory memory);  // collective
    int target = 0;
    char *remote = nullptr, *local = nullptr;
    long* word = nullptr;
};

struct Settings {
    double seconds = 0.05;  // time to measure each value
    int window = 64;        // operations before a quiet, where the number matters
    // Bytes moved right before each transfer whose overlap is measured. They use up the burst that a
    // rate-limited link lets through at once. Otherwise a message shorter than the burst would find it full
    // or empty by chance.
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

// One operation at a time, each completed: put and quiet, or get.
double latency(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings);
// Operations per second: windows of non-blocking operations, each followed by a quiet.
double rate(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings);
// A non-blocking operation, a computation that takes as long as the operation alone, a quiet.
Overlap overlap(const Pair& pair, const std::string& op, std::size_t bytes, const Settings& settings);
// Whether all bytes arrive unchanged.
bool verify(const Pair& pair, const std::string& op, std::size_t bytes);

// Each operation is completed: a fetching one by its result, others by a quiet.
double atomic_latency(const Pair& pair, const std::string& op, const Settings& settings);
double atomic_rate(const Pair& pair, const std::string& op, const Settings& settings);
bool verify_atomic(const Pair& pair, const std::string& op);

}  // namespace shmem_bench
