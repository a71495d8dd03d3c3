// Level Zero, from its specification. This file repeats the types and numbers, so that the build needs
// nothing from it.
#include <cstdint>
#include <mutex>
#include <vector>

#include "drivers.h"

namespace offpath::mpi::gpu {
namespace {

using Handle = void*;

constexpr int structure_context = 0xd;
constexpr int structure_queue = 0xe;
constexpr int structure_properties = 0x17;
constexpr int memory_device = 2;
constexpr int queue_synchronous = 1;

struct ContextDescription {
    int structure = structure_context;
    const void* next = nullptr;
    std::uint32_t flags = 0;
};
struct Properties {
    int structure = structure_properties;
    void* next = nullptr;
    int type = 0;
    std::uint64_t id = 0;
    std::uint64_t page_bytes = 0;
};
struct QueueDescription {
    int structure = structure_queue;
    const void* next = nullptr;
    std::uint32_t ordinal = 0;
    std::uint32_t index = 0;
    std::uint32_t flags = 0;
    int mode = queue_synchronous;
    int priority = 0;
};

class LevelZero final : public Driver {
  public:
    bool open() {
        const Library library("libze_loader.so.1");
        if (!library.is_loaded() || !library.find(init_, "zeInit") ||
            !library.find(drivers_, "zeDriverGet") || !library.find(create_context_, "zeContextCreate") ||
            !library.find(properties_, "zeMemGetAllocProperties") ||
            !library.find(create_list_, "zeCommandListCreateImmediate") ||
            !library.find(append_copy_, "zeCommandListAppendMemoryCopy"))
            return false;
        // A driver knows all its allocations, no matter in which context they were made.
        std::uint32_t count = 0;
        if (init_(0) != success || drivers_(&count, nullptr) != success) return false;
        std::vector<Handle> drivers(count);
        if (drivers_(&count, drivers.data()) != success) return false;
        const ContextDescription description;
        for (Handle driver : drivers) {
            Handle context = nullptr;
            if (create_context_(driver, &description, &context) == success) contexts_.push_back(context);
        }
        return !contexts_.empty();
    }

    bool holds(const void* address) const override {
        Handle context = nullptr;
        return device_of(address, context) != nullptr;
    }

    bool copy(void* to, const void* from, std::size_t bytes) const override {
        Handle context = nullptr;
        Handle device = device_of(to, context);
        if (device == nullptr) device = device_of(from, context);
        if (device == nullptr) return false;
        const std::lock_guard lock(mutex_);  // one thread at a time may use a list
        Handle list = list_for(context, device);
        return list != nullptr && append_copy_(list, to, from, bytes, nullptr, 0, nullptr) == success;
    }

  private:
    struct List {
        Handle device, list;
    };

    // Returns the GPU that owns the memory, or null if the host owns it or both may touch it.
    Handle device_of(const void* address, Handle& context) const {
        for (Handle each : contexts_) {
            Properties properties;
            Handle device = nullptr;
            if (properties_(each, address, &properties, &device) != success) continue;
            if (properties.type != memory_device) continue;
            context = each;
            return device;
        }
        return nullptr;
    }

    Handle list_for(Handle context, Handle device) const {
        for (const List& each : lists_) {
            if (each.device == device) return each.list;
        }
        const QueueDescription description;
        Handle list = nullptr;
        if (create_list_(context, device, &description, &list) != success) return nullptr;
        lists_.push_back({device, list});
        return list;
    }

    Result (*init_)(std::uint32_t) = nullptr;
    Result (*drivers_)(std::uint32_t*, Handle*) = nullptr;
    Result (*create_context_)(Handle, const ContextDescription*, Handle*) = nullptr;
    Result (*properties_)(Handle, const void*, Properties*, Handle*) = nullptr;
    Result (*create_list_)(Handle, Handle, const QueueDescription*, Handle*) = nullptr;
    Result (*append_copy_)(Handle, void*, const void*, std::size_t, Handle, std::uint32_t, Handle*) = nullptr;
    std::vector<Handle> contexts_;
    mutable std::mutex mutex_;
    mutable std::vector<List> lists_;
};

}  // namespace

Driver* find_level_zero() {
    static LevelZero driver;
    return driver.open() ? &driver : nullptr;
}

}  // namespace offpath::mpi::gpu
