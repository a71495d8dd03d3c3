#include "openmp/shared_memory.h"

#include "base/environment.h"
#include "memory/shareable.h"

#include <dlfcn.h>

#include <iterator>
#include <vector>

namespace offpath::openmp {
namespace {

constexpr int most_places = 16;
// Smaller data travel with their request.
constexpr std::uint64_t least_bytes = 4096;

bool sharing_is_on() {
    static const bool on = environment::text("OFFPATH_TARGET_SHARE", "on") != "off";
    return on;
}

// The list of the library that has attached the program, or this library's, where make() notes its memory.
bool find_shareable(const void* address, std::uint64_t bytes, memory::Shareable& found) {
    static const auto theirs =
        reinterpret_cast<decltype(&offpath_find_shareable)>(dlsym(RTLD_DEFAULT, "offpath_find_shareable"));
    std::uint64_t ended = 0;
    if (theirs != nullptr) {
        if (theirs(address, bytes, &found)) {
            found.number *= 2;
            return true;
        }
        ended = found.ended;
    }
    const bool mine = memory::shareable::find(address, bytes, found);
    found.number = found.number * 2 + 1;
    found.ended += ended;
    return mine;
}

const std::byte* at(const void* address) {
    return static_cast<const std::byte*>(address);
}

}  // namespace

Status SharedMemory::make(target::Target& target, std::uint64_t bytes, void*& address, std::string& problem) {
    if (!target.maps_files()) {
        problem = "host and device can share memory only if the device is attached locally";
        return Status::unsupported;
    }
    Own own;
    if (Status status = memory::make_memory_file("offpath-target", bytes, own.file); status != Status::ok) {
        problem = "no memory file can be made";
        return status;
    }
    // The device's process may have memory of its own at an address. Those that were in vain stay reserved
    // until the end, so that the next one differs.
    std::vector<memory::Mapping> in_vain;
    Status status = Status::unavailable;
    for (int i = 0; i < most_places && status == Status::unavailable; ++i) {
        if (own.mapping.data() != nullptr) in_vain.push_back(std::move(own.mapping));
        own.mapping = memory::Mapping();
        if (memory::Mapping::map(own.file.get(), bytes, own.mapping) != Status::ok) {
            problem = "it cannot be mapped";
            return Status::memory;
        }
        auto there = reinterpret_cast<std::uint64_t>(own.mapping.data());
        status = target.map_file(own.file.get(), own.mapping.bytes(), there, problem);
    }
    if (status != Status::ok) return status;
    address = own.mapping.data();
    memory::shareable::note(address, own.mapping.bytes(), own.file.get());
    std::lock_guard lock(mutex_);
    own_[address] = std::move(own);
    return Status::ok;
}

bool SharedMemory::free(target::Target& target, void* address) {
    std::lock_guard lock(mutex_);
    const auto found = own_.find(address);
    if (found == own_.end()) return false;
    memory::shareable::forget(address);
    (void)target.release(0, reinterpret_cast<std::uint64_t>(address));
    own_.erase(found);
    return true;
}

void* SharedMemory::share(target::Target& target, const void* host, std::uint64_t bytes) {
    if (host == nullptr || bytes < least_bytes || !sharing_is_on() || !target.maps_files()) return nullptr;
    memory::Shareable found;
    const bool there_is = find_shareable(host, bytes, found);
    std::lock_guard lock(mutex_);
    drop_ended(target, found.ended);
    if (!there_is || !works_) return nullptr;
    auto file = files_.begin();
    while (file != files_.end() && (file->second.number != found.number || file->second.parted))
        ++file;
    if (file == files_.end()) {
        std::uint64_t there = 0;
        std::string ignored;
        works_ = target.map_file(found.fd, found.bytes, there, ignored) == Status::ok;
        if (!works_) return nullptr;  // copies work as well
        Shared made;
        made.host = at(found.begin);
        made.bytes = found.bytes;
        made.number = found.number;
        file = files_.emplace(reinterpret_cast<const std::byte*>(there), made).first;
    }
    ++file->second.users;
    return const_cast<std::byte*>(file->first) + (at(host) - file->second.host);
}

// Without users nothing uses the device's mapping any more. It goes when the program's has gone, or is
// parted.
void SharedMemory::drop_ended(target::Target& target, std::uint64_t ended) {
    if (ended == ended_) return;
    ended_ = ended;
    for (auto each = files_.begin(); each != files_.end();) {
        const auto file = each++;
        memory::Shareable found;
        if (file->second.users > 0 ||
            (find_shareable(file->second.host, 1, found) && found.number == file->second.number))
            continue;
        (void)target.release(0, reinterpret_cast<std::uint64_t>(file->first));
        files_.erase(file);
    }
}

SharedMemory::Files::iterator SharedMemory::find(const void* there) {
    const auto next = files_.upper_bound(at(there));
    if (next == files_.begin()) return files_.end();
    const auto file = std::prev(next);
    return at(there) < file->first + file->second.bytes ? file : files_.end();
}

bool SharedMemory::unshare(target::Target& target, const void* address) {
    std::lock_guard lock(mutex_);
    const auto file = find(address);
    if (file == files_.end()) return false;
    if (--file->second.users == 0 && file->second.parted) {
        (void)target.release(0, reinterpret_cast<std::uint64_t>(file->first));
        files_.erase(file);
    }
    return true;
}

bool SharedMemory::shared(const void* there) {
    std::lock_guard lock(mutex_);
    const auto file = find(there);
    return file != files_.end() && !file->second.parted;
}

bool SharedMemory::same(target::Target& target, const void* there, const void* host, std::uint64_t bytes,
                        bool writes) {
    std::lock_guard lock(mutex_);
    if (own_.contains(there) && there == host) return true;
    const auto file = find(there);
    if (file == files_.end() || file->second.parted) return false;
    memory::Shareable found;
    if (at(host) - file->second.host == at(there) - file->first && find_shareable(host, bytes, found) &&
        found.number == file->second.number)
        return true;
    std::string ignored;
    if (writes)
        file->second.parted =
            target.part(reinterpret_cast<std::uint64_t>(file->first), ignored) == Status::ok;
    return false;
}

}  // namespace offpath::openmp
