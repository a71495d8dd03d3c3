#include "exposed_memory.h"

#include <offpath/offpath.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

struct Exposed {
    const Window* window = nullptr;
    std::uintptr_t begin = 0, end = 0;
};
struct Freed {
    void* base = nullptr;
    std::uintptr_t end = 0;
};

std::mutex exposed_mutex;
std::vector<Exposed> exposed_ranges;
std::vector<Freed> freed;  // memory that the program has freed while a window still exposes it

std::uintptr_t address(const void* place) {
    return reinterpret_cast<std::uintptr_t>(place);
}

// Needs the lock.
bool is_still_exposed(const Freed& memory) {
    return std::any_of(exposed_ranges.begin(), exposed_ranges.end(), [&](const Exposed& each) {
        return each.begin < memory.end && address(memory.base) < each.end;
    });
}

template <typename Gone>
void forget_exposed(Gone gone) {
    std::vector<Freed> over;
    {
        const std::lock_guard lock(exposed_mutex);
        std::erase_if(exposed_ranges, gone);
        std::erase_if(freed, [&](const Freed& memory) {
            if (is_still_exposed(memory)) return false;
            over.push_back(memory);
            return true;
        });
    }
    for (const Freed& memory : over)
        offpath_mem_free(runtime().context, memory.base);
}

}  // namespace

void expose(const Window& window, const void* base, std::size_t bytes) {
    if (bytes == 0) return;
    const std::lock_guard lock(exposed_mutex);
    exposed_ranges.push_back({&window, address(base), address(base) + bytes});
}

void conceal(const Window& window, const void* base) {
    forget_exposed(
        [&](const Exposed& each) { return each.window == &window && each.begin == address(base); });
}

void conceal(const Window& window) {
    forget_exposed([&](const Exposed& each) { return each.window == &window; });
}

bool is_exposed(const Window& window, const void* base) {
    const std::lock_guard lock(exposed_mutex);
    return std::any_of(exposed_ranges.begin(), exposed_ranges.end(), [&](const Exposed& each) {
        return each.window == &window && each.begin == address(base);
    });
}

std::vector<std::pair<void*, std::size_t>> exposed_by(const Window& window) {
    std::vector<std::pair<void*, std::size_t>> found;
    const std::lock_guard lock(exposed_mutex);
    for (const Exposed& each : exposed_ranges) {
        if (each.window == &window)
            found.emplace_back(reinterpret_cast<void*>(each.begin), each.end - each.begin);
    }
    return found;
}

void free_memory(void* base, std::size_t bytes) {
    {
        const std::lock_guard lock(exposed_mutex);
        const Freed memory{base, address(base) + bytes};
        if (is_still_exposed(memory)) {
            freed.push_back(memory);
            return;
        }
    }
    offpath_mem_free(runtime().context, base);
}

}  // namespace offpath::mpi
