// A stand-in for CUDA's driver library on machines without a GPU. The host cannot touch its memory (the test
// program would crash), and no other process can read it. Its copies use a second mapping.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

struct Allocation {
    char* device;
    char* shadow;
    std::size_t bytes;
    bool managed;
};
std::mutex mutex;
std::vector<Allocation> allocations;
int context = 0;

constexpr int success = 0, invalid_value = 1, out_of_memory = 2;

const Allocation* find(std::uint64_t address) {
    const std::lock_guard lock(mutex);
    for (const Allocation& each : allocations) {
        const auto first = reinterpret_cast<std::uint64_t>(each.device);
        if (address >= first && address < first + each.bytes) return &each;
    }
    return nullptr;
}

char* touchable(std::uint64_t address) {
    const Allocation* found = find(address);
    auto* place = reinterpret_cast<char*>(address);
    return found == nullptr ? place : found->shadow + (place - found->device);
}

int allocate(std::uint64_t* address, std::size_t bytes, bool managed) {
    const int file = memfd_create("fake GPU", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return out_of_memory;
    void* shadow = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void* device = mmap(nullptr, bytes, managed ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, file, 0);
    close(file);
    if (shadow == MAP_FAILED || device == MAP_FAILED) return out_of_memory;
    const std::lock_guard lock(mutex);
    allocations.reserve(1000);  // what find() gives stays where it is
    allocations.push_back({static_cast<char*>(device), static_cast<char*>(shadow), bytes, managed});
    *address = reinterpret_cast<std::uint64_t>(device);
    return success;
}

}  // namespace

// The build hides symbols by default.
#pragma GCC visibility push(default)
extern "C" {

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
    return allocate(address, bytes, false);
}

int cuMemAllocManaged(std::uint64_t* address, std::size_t bytes, unsigned) {
    return allocate(address, bytes, true);
}

int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
    const Allocation* found = find(address);
    if (found == nullptr) return invalid_value;
    switch (attribute) {
        case 1:
            *static_cast<void**>(value) = &context;
            return success;
        case 2:
            *static_cast<unsigned*>(value) = 2;
            return success;
        case 8:
            *static_cast<unsigned*>(value) = found->managed ? 1 : 0;
            return success;
        default:
            return invalid_value;
    }
}

int cuCtxPushCurrent_v2(void* which) {
    return which == &context ? success : invalid_value;
}

int cuCtxPopCurrent_v2(void** which) {
    *which = &context;
    return success;
}

int cuMemcpy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
    std::memcpy(touchable(to), touchable(from), bytes);
    return success;
}

int cuStreamSynchronize(void*) {
    return success;
}

}  // extern "C"
#pragma GCC visibility pop
