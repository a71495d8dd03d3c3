#include "memory/map_regions.h"

#include "base/log.h"

namespace offpath::memory {

Status MapRegions::open(Region& region, const char*& why) {
    if (const Status status = check_memory_file(region.file.get(), region.bytes, why); status != Status::ok)
        return status;
    // A mapping that an older region had at these addresses of the client is no longer valid.
    cache_.invalidate(region.address, region.bytes);
    why = "no room to map it";
    if (pin(region) == nullptr) return Status::memory;
    unpin(region);
    return Status::ok;
}

std::byte* MapRegions::pin(Region& region) {
    if (region.pin) return region.pin->data();
    region.pin = cache_.find(region.address, region.bytes, region.id);
    if (!region.pin) {
        Mapping mapping;
        if (Mapping::map(region.file.get(), region.bytes, mapping) != Status::ok) return nullptr;
        region.pin = cache_.insert(region.address, region.bytes, std::move(mapping), region.id);
        if (!region.pin) {
            log::warn(Code::limit, "region {}: {} bytes do not fit under the cap of mapped memory", region.id,
                      region.bytes);
            return nullptr;
        }
        region.pin->advise_huge_pages();
        region.pin->populate_if_allocated(region.file.get());
    }
    return region.pin->data();
}

void MapRegions::close(Region& region) {
    const bool mapped = static_cast<bool>(region.pin) ||
                        static_cast<bool>(region.pin = cache_.find(region.address, region.bytes, region.id));
    if (mapped) cache_.invalidate(region.address, region.bytes);
    region.pin.reset();
}

}  // namespace offpath::memory
