// MapRegions: back end `map` of one session: memory files of the client, mapped here. A region is mapped when
// it is added; while nobody pins it, its mapping may be given up for another one under the cap, and is made
// again from the file that is kept. Threads: one.
#pragma once

#include "memory/file.h"
#include "memory/registration_cache.h"

#include <cstdint>

namespace offpath::memory {

class MapRegions {
  public:
    using Cache = RegistrationCache<Mapping, NullMutex>;

    // What the owner keeps for each region, and gives back with every call.
    struct Region {
        std::uint64_t id = 0, address = 0, bytes = 0;
        File file;
        Cache::Pin pin;  // empty: the mapping may be given up
    };

    explicit MapRegions(std::uint64_t mapped_bytes_cap) : cache_(mapped_bytes_cap) {}

    // Errors: invalid, and `why` says what is wrong with the file; memory (over the cap, or no address
    // space).
    Status open(Region& region, const char*& why);
    // The first byte of the region, pinned from now on; null: no room under the cap, or no address space.
    std::byte* pin(Region& region);
    static void unpin(Region& region) { region.pin.reset(); }
    void close(Region& region);

    RegistrationCacheStats stats() const { return cache_.stats(); }

  private:
    Cache cache_;
};

}  // namespace offpath::memory
