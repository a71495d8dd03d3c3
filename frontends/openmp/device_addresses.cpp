// Device addresses that libomptarget takes for addresses of the host.
#include "openmp/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace offpath::openmp {
namespace {

// Whether this process has memory there.
bool has_page(std::uint64_t address) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(address / page * page), page, &resident) == 0;
}

}  // namespace

// clang up to version 16 maps what `has_device_addr` names as if its device address were one of the host's.
// Such an address is of this device's memory, and the program has no memory there.
void* Device::take_as_host(const void* host) {
    if (host == nullptr) return nullptr;
    const auto address = reinterpret_cast<std::uint64_t>(host);
    std::lock_guard lock(mutex_);
    const auto next = mapped_.upper_bound(address);
    bool is_device =
        next != mapped_.begin() && address < std::prev(next)->first + std::prev(next)->second.bytes;
    for (const Table& table : tables_)
        is_device = is_device || std::ranges::any_of(table.entries, [&](const OffloadEntry& entry) {
                        return address - reinterpret_cast<std::uint64_t>(entry.address) < entry.bytes;
                    });
    if (!is_device || has_page(address)) return nullptr;
    void* const device = const_cast<void*>(host);
    taken_as_host_.insert(device);
    return device;
}

bool Device::is_taken_as_host(const void* device, const void* host) {
    if (device != host) return false;
    std::lock_guard lock(mutex_);
    return taken_as_host_.contains(device);
}

}  // namespace offpath::openmp
