// MapRegions: back end `map` of one session. It maps the client's memory files into this process. A region is
// mapped when it is added. While no transfer pins it, it may be unmapped to make room for another under the
// cap. The file stays open, and the next pin maps it again. Threads: one.
#pragma once

#include "memory/file.h"
#include "memory/registration_cache.h"

#include <cstdint>

namespace offpath::memory {

class MapRegions {
  public:
    using Cache = RegistrationCache<Mapping, NullMutex>;

    // State of one region. The owner keeps it and passes it to every call.
    struct Region {
        std::uint64_t id = 0, address = 0, bytes = 0;
        File file;
        Cache::Pin pin;  // empty: the mapping may be given up
    };

    explicit MapRegions(std::uint64_t mapped_bytes_cap) : cache_(mapped_bytes_cap) {}

    // Errors: invalid (`why` says what is wrong with the file), memory (over the cap, or no address space).
    Status open(Region& region, const char*& why);
    // Pins the region and returns its first byte. Null: no room under the cap, or no address space.
    std::byte* pin(Region& region);
    static void unpin(Region& region) { region.pin.reset(); }
    void close(Region& region);

    RegistrationCacheStats stats() const { return cache_.stats(); }

  private:
    Cache cache_;
};

}  // namespace offpath::memory
