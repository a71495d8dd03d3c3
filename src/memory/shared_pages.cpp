#include "memory/shared_pages.h"

#include <algorithm>

#include <sys/mman.h>

namespace offpath::memory {

SharedPages::~SharedPages() {
    for (const auto& [number, begin] : windows_)
        munmap(begin, window_bytes);
}

bool SharedPages::map(std::uint64_t window) {
    if (windows_.contains(window)) return true;
    if (windows_.size() >= most_windows) return false;
    // Huge pages need addresses that agree with the file's offsets.
    void* const reserved = mmap(nullptr, window_bytes + huge_page_bytes, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return false;
    auto* const first = static_cast<std::byte*>(reserved);
    const std::size_t skipped =
        (huge_page_bytes - reinterpret_cast<std::uintptr_t>(first) % huge_page_bytes) % huge_page_bytes;
    std::byte* const begin = first + skipped;
    const bool mapped =
        mmap(begin, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_.get(),
             static_cast<off_t>(window * window_bytes)) != MAP_FAILED;
    if (!mapped) {
        munmap(reserved, window_bytes + huge_page_bytes);
        return false;
    }
    if (skipped > 0) munmap(first, skipped);
    if (skipped < huge_page_bytes) munmap(begin + window_bytes, huge_page_bytes - skipped);
    windows_.emplace(window, begin);
    return true;
}

Status SharedPages::add(std::uint64_t address, std::uint64_t bytes, File file, const char*& why) {
    why = "it has no whole pages";
    if (bytes == 0 || address % page_bytes() != 0 || bytes % page_bytes() != 0 ||
        address > UINT64_MAX - bytes)
        return Status::invalid;
    if (!file_) {
        if (const Status status = check_memory_file(file.get(), address + bytes, why); status != Status::ok)
            return status;
        file_ = std::move(file);
    } else if (const Status status = check_memory_file(file_.get(), address + bytes, why);
               status != Status::ok) {
        return status;
    }
    why = "there are too many";
    if (ranges_.size() >= most_ranges) return Status::memory;
    why = "no room to map it";
    for (std::uint64_t window = address / window_bytes; window <= (address + bytes - 1) / window_bytes;
         ++window)
        if (!map(window)) return Status::memory;
    std::uint64_t begin = address, end = address + bytes;
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ranges_.end() && next->first <= end) {
        begin = std::min(begin, next->first);
        end = std::max(end, next->second);
        next = ranges_.erase(next);
    }
    ranges_.emplace(begin, end);
    return Status::ok;
}

void SharedPages::forget(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t stop = address > UINT64_MAX - bytes ? UINT64_MAX : address + bytes;
    auto next = ranges_.upper_bound(address);
    if (next != ranges_.begin() && std::prev(next)->second > address) --next;
    while (next != ranges_.end() && next->first < stop) {
        const auto [begin, end] = *next;
        next = ranges_.erase(next);
        if (begin < address) ranges_.emplace(begin, address);
        if (end > stop) ranges_.emplace(stop, end);
    }
}

SharedPages::Run SharedPages::run(std::uint64_t address, std::uint64_t bytes) const {
    const auto next = ranges_.upper_bound(address);
    const std::uint64_t to_next = next == ranges_.end() ? UINT64_MAX : next->first - address;
    if (next == ranges_.begin() || std::prev(next)->second <= address)
        return {nullptr, std::min(bytes, to_next)};
    const std::uint64_t in_window = address % window_bytes;
    const auto window = windows_.find(address / window_bytes);
    if (window == windows_.end()) return {nullptr, bytes};
    return {window->second + in_window,
            std::min({bytes, std::prev(next)->second - address, window_bytes - in_window})};
}

}  // namespace offpath::memory
