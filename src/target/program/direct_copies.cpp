#include "target/program/direct_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace offpath::target {

DirectCopies::Stream& DirectCopies::stream(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Stream>& found = streams_[number];
    if (found == nullptr) found = std::make_unique<Stream>();
    return *found;
}

void DirectCopies::copy(const Get& get) {
    if (const std::byte* const from = pool_.find(get.address, get.bytes); from != nullptr)
        std::memcpy(get.destination, from, get.bytes);
}

bool DirectCopies::put(std::uint32_t number, std::uint64_t address, const void* source, std::uint64_t bytes) {
    std::byte* const to = pool_.find(address, bytes);
    if (to == nullptr) return false;
    Stream& in = stream(number);
    const std::lock_guard lock(in.mutex);
    if (!in.is_idle()) return false;
    std::memcpy(to, source, bytes);
    return true;
}

bool DirectCopies::get(std::uint32_t number, void* destination, std::uint64_t address, std::uint64_t bytes) {
    if (pool_.find(address, bytes) == nullptr) return false;
    Stream& in = stream(number);
    const std::lock_guard lock(in.mutex);
    in.gets.push_back({in.sent, destination, address, bytes});
    if (in.is_idle()) {
        copy(in.gets.back());
        in.gets.pop_back();
    }
    return true;
}

bool DirectCopies::release(std::uint32_t number, std::uint64_t address) {
    if (pool_.find(address, 0) == nullptr) return false;
    Stream& in = stream(number);
    const std::lock_guard lock(in.mutex);
    if (in.is_idle()) return pool_.release(address);
    in.releases.push_back({in.sent, address});
    return true;
}

std::vector<DirectCopies::Get> DirectCopies::begin_request(std::uint32_t number) {
    Stream& in = stream(number);
    const std::lock_guard lock(in.mutex);
    ++in.sent;
    return std::exchange(in.gets, {});
}

bool DirectCopies::is_idle(std::uint32_t number) {
    Stream& in = stream(number);
    const std::lock_guard lock(in.mutex);
    return in.is_idle();
}

void DirectCopies::begin_sync(std::uint32_t number, std::uint64_t sync, bool keeps_error) {
    Stream& in = stream(number);
    const std::lock_guard lock(in.mutex);
    const std::lock_guard maps(mutex_);
    syncs_[sync] = {number, in.sent, keeps_error};
}

void DirectCopies::finish(std::uint64_t number, bool ok) {
    Sync sync;
    {
        const std::lock_guard lock(mutex_);
        const auto found = syncs_.extract(number);
        if (!found) return;
        sync = found.mapped();
    }
    if (sync.keeps_error && !ok) return;
    Stream& in = stream(sync.stream);
    const std::lock_guard lock(in.mutex);
    in.done = std::max(in.done, sync.after);
    const auto is_over = [&](const auto& each) { return each.after <= in.done; };
    std::erase_if(in.gets, [&](const Get& get) {
        if (is_over(get) && ok) copy(get);
        return is_over(get);
    });
    std::erase_if(in.releases, [&](const Release& each) {
        if (is_over(each)) pool_.release(each.address);
        return is_over(each);
    });
}

}  // namespace offpath::target
