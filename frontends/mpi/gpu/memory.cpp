#include "memory.h"

#include <link.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "drivers.h"

namespace offpath::mpi::gpu {
namespace {

constexpr std::array finders = {find_cuda, find_rocm, find_level_zero};

std::array<std::atomic<Driver*>, finders.size()> drivers{};
std::atomic<unsigned long> buffers_staged{0};

// When this code last searched for libraries, and how many the process had loaded by then.
std::mutex drivers_mutex;
std::atomic<std::uint64_t> looked_at{0};
unsigned long long loads_seen = 0;

// A tick lasts some milliseconds and is cheap to read. A driver takes much longer to initialise after its
// library was loaded. So no GPU memory is allocated in the tick in which the library is loaded.
std::uint64_t tick() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

unsigned long long loads() {
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
            *static_cast<unsigned long long*>(result) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

void look_for_drivers() {
    const std::uint64_t now = tick();
    if (looked_at.load(std::memory_order_acquire) == now) return;
    const std::lock_guard lock(drivers_mutex);
    if (const unsigned long long count = loads(); count != loads_seen) {
        for (std::size_t i = 0; i < finders.size(); ++i) {
            if (drivers[i].load(std::memory_order_relaxed) == nullptr)
                drivers[i].store(finders[i](), std::memory_order_release);
        }
        loads_seen = count;
    }
    looked_at.store(now, std::memory_order_release);
}

const Driver* driver_of(const void* address) {
    for (const std::atomic<Driver*>& each : drivers) {
        const Driver* driver = each.load(std::memory_order_acquire);
        if (driver != nullptr && driver->holds(address)) return driver;
    }
    return nullptr;
}

}  // namespace

bool any_driver() {
    look_for_drivers();
    return std::any_of(drivers.begin(), drivers.end(), [](const std::atomic<Driver*>& driver) {
        return driver.load(std::memory_order_relaxed) != nullptr;
    });
}

bool is_device_memory(const void* address) {
    look_for_drivers();
    return driver_of(address) != nullptr;
}

bool copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return true;
    look_for_drivers();
    const Driver* driver = driver_of(to);
    if (driver == nullptr) driver = driver_of(from);
    if (driver != nullptr) return driver->copy(to, from, bytes);
    std::memcpy(to, from, bytes);
    return true;
}

void count_staged() {
    buffers_staged.fetch_add(1, std::memory_order_relaxed);
}

unsigned long staged() {
    return buffers_staged.load(std::memory_order_relaxed);
}

}  // namespace offpath::mpi::gpu
