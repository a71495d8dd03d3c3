#include "memory/host_allocator.h"

#include "base/child_copies.h"
#include "memory/shareable.h"

namespace offpath::memory {

HostAllocator::~HostAllocator() {
    for (auto& [address, held] : held_) {
        shareable::forget(address);
        if (held.kept) {
            held.mapping.release();
            held.file.release();  // child_copies looks for present pages in it
        } else {
            child_copies::forget(address);
        }
    }
}

Status HostAllocator::allocate(std::size_t bytes, Allocation& allocation) {
    Held held;
    if (const Status status = make_memory_file("offpath", bytes, held.file); status != Status::ok)
        return status;
    if (const Status status = Mapping::map(held.file.get(), bytes, held.mapping); status != Status::ok)
        return status;
    held.mapping.advise_huge_pages();
    if (bytes <= prefaulted_bytes) held.mapping.populate();
    std::lock_guard lock(mutex_);
    held.allocation = {next_region_++, held.mapping.data(), held.mapping.bytes(), held.file.get()};
    allocation = held.allocation;
    shareable::note(allocation.address, allocation.bytes, allocation.fd);
    child_copies::note(allocation.address, allocation.bytes, allocation.fd);
    held_.emplace(allocation.address, std::move(held));
    return Status::ok;
}

Status HostAllocator::publish(const Allocation& allocation) {
    return table_.insert(allocation.region, allocation.address, allocation.bytes);
}

HostAllocator::Allocation HostAllocator::adopt(void* address, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    return {next_region_++, address, bytes, -1};
}

Status HostAllocator::withdraw(const void* address, Allocation& allocation) {
    std::lock_guard lock(mutex_);
    const auto found = held_.find(address);
    if (found == held_.end()) return Status::invalid;
    allocation = found->second.allocation;
    table_.erase(allocation.region);
    return Status::ok;
}

Status HostAllocator::keep(const void* address) {
    std::lock_guard lock(mutex_);
    const auto found = held_.find(address);
    if (found == held_.end()) return Status::invalid;
    found->second.kept = true;
    return Status::ok;
}

void HostAllocator::release(const Allocation& allocation) {
    Held ended;  // unmapped after the lock is released
    std::lock_guard lock(mutex_);
    const auto found = held_.find(allocation.address);
    if (found == held_.end() || found->second.allocation.region != allocation.region) return;
    shareable::forget(allocation.address);
    child_copies::forget(allocation.address);
    ended = std::move(found->second);
    held_.erase(found);
}

}  // namespace offpath::memory
