#include "target/host/unified_memory.h"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace offpath::target {
namespace {

constexpr std::size_t first_pages = 4, most_pages = 256;
constexpr std::uint64_t lowest_address = 64 << 10;
// How far the program's memory may grow beside what it has when the process starts.
constexpr std::uint64_t growth_bytes = std::uint64_t{4} << 30;

bool reserve_pages(std::uint64_t begin, std::uint64_t bytes, int flags) {
    void* const place = reinterpret_cast<void*>(begin);
    void* const made =
        mmap(place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (made == place) return true;
    if (made != MAP_FAILED) munmap(made, bytes);  // a kernel that does not know MAP_FIXED_NOREPLACE
    return false;
}

std::byte* at(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(address);
}

}  // namespace

UnifiedMemory::UnifiedMemory(std::unique_ptr<ProgramMemory> program)
    : program_(std::move(program)), page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {}

Status UnifiedMemory::reserve(std::span<const AddressRange> ranges, std::string& problem) {
    std::lock_guard lock(mutex_);
    for (AddressRange range : ranges) {
        range.begin &= ~(page_bytes_ - 1);
        range.end = (range.end + page_bytes_ - 1) & ~(page_bytes_ - 1);
        if (range.begin < lowest_address || range.end <= range.begin) continue;
        if (!reserve_pages(range.begin, range.end - range.begin, MAP_FIXED_NOREPLACE)) {
            problem = fmt::format("the device's process has memory of its own between {:#x} and {:#x}",
                                  range.begin, range.end);
            return Status::unavailable;
        }
        reserved_.push_back(range);
    }
    // Best effort: faults elsewhere are served page by page.
    for (AddressRange& range : reserved_) {
        for (std::uint64_t more = growth_bytes; more >= growth_bytes / 16; more /= 2)
            if (range.begin > more + lowest_address &&
                reserve_pages(range.begin - more, more, MAP_FIXED_NOREPLACE)) {
                range.begin -= more;
                break;
            }
        for (std::uint64_t more = growth_bytes; more >= growth_bytes / 16; more /= 2)
            if (reserve_pages(range.end, more, MAP_FIXED_NOREPLACE)) {
                range.end += more;
                break;
            }
    }
    std::sort(reserved_.begin(), reserved_.end(),
              [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
    return Status::ok;
}

bool UnifiedMemory::fault(std::uint64_t address, std::uint64_t instruction) {
    const std::uint64_t page = address & ~(page_bytes_ - 1);
    if (address < lowest_address || (instruction & ~(page_bytes_ - 1)) == page) return false;
    std::lock_guard lock(mutex_);
    const auto found = pages_.find(page);
    if (found == pages_.end()) return fetch(page);
    // With a copy, another thread has made it writable since.
    return found->second.before != nullptr || make_writable(page);
}

// How many pages from this one on are reserved and absent.
std::size_t UnifiedMemory::reserved_after(std::uint64_t page, std::size_t limit) const {
    const auto range = std::find_if(reserved_.begin(), reserved_.end(), [page](const AddressRange& each) {
        return each.begin <= page && page < each.end;
    });
    if (range == reserved_.end()) return 0;
    std::uint64_t end = std::min<std::uint64_t>(range->end, page + limit * page_bytes_);
    if (const auto next = pages_.upper_bound(page); next != pages_.end()) end = std::min(end, next->first);
    return (end - page) / page_bytes_;
}

bool UnifiedMemory::fetch(std::uint64_t page) {
    fetch_pages_ = page == next_fetch_ ? std::min(fetch_pages_ * 2, most_pages) : first_pages;
    // Outside of what is reserved, the next page may be this process's own.
    const std::size_t wanted = std::max<std::size_t>(reserved_after(page, fetch_pages_), 1) * page_bytes_;
    void* const room = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return false;
    const std::size_t got = program_->read(page, std::span(static_cast<std::byte*>(room), wanted));
    // The program's pages may be smaller.
    const std::size_t bytes = (got + page_bytes_ - 1) / page_bytes_ * page_bytes_;
    if (bytes < wanted) munmap(static_cast<std::byte*>(room) + bytes, wanted - bytes);
    if (bytes == 0) return false;
    // In one step, since other threads may look at these addresses.
    if (mprotect(room, bytes, PROT_READ) != 0 ||
        mremap(room, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(page)) == MAP_FAILED) {
        munmap(room, bytes);
        // The system allows a process so many mappings.
        std::string ignored;
        if (pages_.empty() || !write_back(ignored)) return false;
        drop();
        return true;
    }
    for (std::size_t offset = 0; offset < bytes; offset += page_bytes_)
        pages_[page + offset] = {};
    next_fetch_ = page + bytes;
    return true;
}

bool UnifiedMemory::make_writable(std::uint64_t page) {
    write_pages_ = page == next_write_ ? std::min(write_pages_ * 2, most_pages) : 1;
    std::uint64_t end = page;
    for (auto each = pages_.find(page);
         each != pages_.end() && each->first == end && each->second.before == nullptr &&
         end < page + write_pages_ * page_bytes_;
         ++each) {
        each->second.before = std::make_unique_for_overwrite<std::byte[]>(page_bytes_);
        std::memcpy(each->second.before.get(), at(end), page_bytes_);
        written_.push_back(end);
        end += page_bytes_;
    }
    next_write_ = end;
    return mprotect(at(page), end - page, PROT_READ | PROT_WRITE) == 0;
}

void UnifiedMemory::add_changes(std::uint64_t page, const std::byte* before,
                                std::vector<memory::ForeignPiece>& pieces) const {
    std::byte* const now = at(page);
    constexpr std::size_t step = sizeof(std::uint64_t);
    for (std::size_t i = 0; i < page_bytes_;) {
        if (i % step == 0 && std::memcmp(now + i, before + i, step) == 0) {
            i += step;
        } else if (now[i] == before[i]) {
            ++i;
        } else {
            const std::size_t begin = i;
            while (i < page_bytes_ && now[i] != before[i])
                ++i;
            pieces.push_back({page + begin, now + begin, i - begin});
        }
    }
}

bool UnifiedMemory::write_back(std::string& problem) {
    if (written_.empty()) return true;
    std::sort(written_.begin(), written_.end());
    for (std::size_t i = 0; i < written_.size();) {
        std::size_t end = i + 1;
        while (end < written_.size() && written_[end] == written_[end - 1] + page_bytes_)
            ++end;
        // Before the comparison, since other functions may still write.
        mprotect(at(written_[i]), (end - i) * page_bytes_, PROT_READ);
        i = end;
    }
    std::vector<memory::ForeignPiece> pieces;
    for (const std::uint64_t page : written_) {
        Page& each = pages_[page];
        add_changes(page, each.before.get(), pieces);
        each.before.reset();
    }
    written_.clear();
    if (pieces.empty() || program_->write(pieces)) return true;
    problem = fmt::format("what it has written at {:#x} is not memory that the program may write",
                          pieces.front().address);
    return false;
}

void UnifiedMemory::drop() {
    for (auto first = pages_.begin(); first != pages_.end();) {
        auto last = first;
        std::uint64_t end = first->first;
        for (; last != pages_.end() && last->first == end; ++last)
            end += page_bytes_;
        reserve_pages(first->first, end - first->first, MAP_FIXED);
        first = last;
    }
    pages_.clear();
    next_fetch_ = next_write_ = 0;
}

bool UnifiedMemory::acquire(std::string& problem) {
    std::lock_guard lock(mutex_);
    const bool written = write_back(problem);
    drop();
    return written;
}

bool UnifiedMemory::release(std::string& problem) {
    std::lock_guard lock(mutex_);
    return write_back(problem);
}

}  // namespace offpath::target
