#include "memory/region_table.h"

namespace offpath::memory {

namespace {

constexpr std::size_t first_capacity = 16;

// The region that this thread found last. It is valid for one version of one table. The versions of different
// tables start far apart and never meet, so a version also identifies its table.
struct LastFound {
    std::uint64_t version = 0;
    std::uintptr_t start = 0, end = 0;
    std::uint64_t region = 0;
};
thread_local LastFound last_found;

std::uint64_t first_version() {
    static std::atomic<std::uint64_t> tables{0};
    return (tables.fetch_add(1, std::memory_order_relaxed) + 1) << 40;
}

}  // namespace

RegionTable::RegionTable() : version_(first_version()) {
    arrays_.push_back(std::make_unique<Array>(first_capacity));
    array_.store(arrays_.back().get(), std::memory_order_release);
}

RegionTable::~RegionTable() = default;

// These release stores pair with the acquire loads in resolve(): a reader that sees one of them also sees the
// odd version.
void RegionTable::move(Entry& to, const Entry& from) {
    to.start.store(from.start.load(std::memory_order_relaxed), std::memory_order_release);
    to.end.store(from.end.load(std::memory_order_relaxed), std::memory_order_release);
    to.region.store(from.region.load(std::memory_order_relaxed), std::memory_order_release);
}

Status RegionTable::insert(std::uint64_t region, const void* address, std::size_t bytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    if (region == 0 || bytes == 0 || start > UINTPTR_MAX - bytes) return Status::invalid;
    const std::uintptr_t end = start + bytes;
    std::lock_guard lock(mutex_);
    Array* array = arrays_.back().get();
    const std::size_t count = count_.load(std::memory_order_relaxed);
    std::size_t place = 0;
    while (place < count && array->entries[place].start.load(std::memory_order_relaxed) < start)
        ++place;
    const bool meets_next =
        place < count && array->entries[place].start.load(std::memory_order_relaxed) < end;
    const bool meets_previous =
        place > 0 && array->entries[place - 1].end.load(std::memory_order_relaxed) > start;
    if (meets_next || meets_previous) return Status::invalid;

    if (count == array->capacity) {
        auto larger = std::make_unique<Array>(count * 2);
        for (std::size_t i = 0; i < count; ++i)
            move(larger->entries[i], array->entries[i]);
        arrays_.push_back(std::move(larger));
        array = arrays_.back().get();
    }
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    array_.store(array, std::memory_order_release);
    for (std::size_t i = count; i > place; --i)
        move(array->entries[i], array->entries[i - 1]);
    array->entries[place].start.store(start, std::memory_order_release);
    array->entries[place].end.store(end, std::memory_order_release);
    array->entries[place].region.store(region, std::memory_order_release);
    count_.store(count + 1, std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
    return Status::ok;
}

Status RegionTable::erase(std::uint64_t region) {
    std::lock_guard lock(mutex_);
    Array& array = *arrays_.back();
    const std::size_t count = count_.load(std::memory_order_relaxed);
    std::size_t place = 0;
    while (place < count && array.entries[place].region.load(std::memory_order_relaxed) != region)
        ++place;
    if (place == count) return Status::invalid;
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    for (std::size_t i = place; i + 1 < count; ++i)
        move(array.entries[i], array.entries[i + 1]);
    count_.store(count - 1, std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
    return Status::ok;
}

HostRange RegionTable::resolve(const void* address, std::size_t bytes) const {
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    HostRange range{0, start, bytes};
    if (start > UINTPTR_MAX - bytes) return range;
    LastFound& last = last_found;
    for (;;) {
        const std::uint64_t version = version_.load(std::memory_order_acquire);
        if (version % 2 != 0) continue;
        if (last.version == version && start >= last.start && start + bytes <= last.end)
            return {last.region, start - last.start, bytes};
        // Acquire loads keep the second load of the version after them.
        const Array& array = *array_.load(std::memory_order_acquire);
        std::size_t low = 0, high = count_.load(std::memory_order_acquire);
        if (high > array.capacity) continue;
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (array.entries[middle].start.load(std::memory_order_acquire) <= start)
                low = middle + 1;
            else
                high = middle;
        }
        LastFound found;
        if (low > 0) {
            const Entry& entry = array.entries[low - 1];
            found = {version, entry.start.load(std::memory_order_acquire),
                     entry.end.load(std::memory_order_acquire), entry.region.load(std::memory_order_acquire)};
        }
        if (version_.load(std::memory_order_relaxed) != version) continue;
        if (low == 0 || start + bytes > found.end) return range;
        last = found;
        return {found.region, start - found.start, bytes};
    }
}

}  // namespace offpath::memory
