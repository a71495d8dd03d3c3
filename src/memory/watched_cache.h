// WatchedCache: a client's registrations of memory that it does not own: a RegistrationCache whose entries
// end when their memory is unmapped, moved or emptied, and after a fork. Where memory cannot be watched,
// nothing is kept: every acquire registers anew, and the handle ends with its pin. Ownership and threads: as
// RegistrationCache with std::mutex.
#pragma once

#include "memory/registration_cache.h"
#include "memory/unmap_watcher.h"

namespace offpath::memory {

template <typename Handle>
class WatchedCache {
  public:
    using Cache = RegistrationCache<Handle, std::mutex>;
    using Pin = typename Cache::Pin;

    explicit WatchedCache(std::uint64_t byte_cap) : cache_(byte_cap) {}

    // Pins a registration that covers the range. If there is none, makes one: make(address, bytes,
    // generation, Handle&) -> Status, called without locks. Errors: invalid (range), or make's own.
    template <typename Make>
    Status acquire(const void* memory, std::size_t bytes, Make&& make, Pin& pin) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        if (bytes == 0 || address > UINTPTR_MAX - bytes) return Status::invalid;
        take_events();
        if (Pin found = cache_.find(address, bytes)) {
            pin = std::move(found);
            return Status::ok;
        }
        // The caller uses the memory, so it stays until the pin is gone; from insert() on, its end is noted.
        const bool watched = watcher_.watch(memory, bytes) == Status::ok;
        const std::uint64_t generation = cache_.new_generation();
        Handle handle;
        if (const Status status = make(address, bytes, generation, handle); status != Status::ok)
            return status;
        Pin made;
        if (watched) made = cache_.insert(address, bytes, std::move(handle), generation);
        if (!made) made = Pin::uncached(address, bytes, generation, std::move(handle));
        pin = std::move(made);
        return Status::ok;
    }

    // Memory that is about to be freed or was revoked. Returns how many of its registrations are in use.
    std::size_t invalidate(const void* memory, std::size_t bytes) {
        return cache_.invalidate(reinterpret_cast<std::uintptr_t>(memory), bytes);
    }
    // Drops everything and, if nothing is in use, stops watching. Not while another thread is in acquire().
    void clear() {
        if (cache_.invalidate_all() == 0) watcher_.rest();
    }
    // Applies what has happened; acquire() does so itself.
    void take_events() {
        watcher_.drain(
            [this](const UnmapWatcher::Event& event) { cache_.invalidate(event.address, event.bytes); });
    }
    RegistrationCacheStats stats() const { return cache_.stats(); }

  private:
    Cache cache_;
    UnmapWatcher watcher_;
};

}  // namespace offpath::memory
