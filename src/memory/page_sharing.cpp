#include "memory/page_sharing.h"

#include "base/child_copies.h"
#include "base/file_size.h"
#include "base/log.h"
#include "memory/huge_pages.h"
#include "memory/pagemap.h"
#include "memory/plain_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace offpath::memory {
namespace {

constexpr std::size_t all_addresses = std::size_t{1} << 48;  // as many addresses as programs have
constexpr std::size_t step_bytes = std::size_t{2} << 20;

thread_local bool inside = false;

// The lock, and the mark that this thread is inside.
class Inside {
  public:
    explicit Inside(std::mutex& mutex) : before_(std::exchange(inside, true)), lock_(mutex) {}
    ~Inside() {
        lock_.unlock();
        inside = before_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    const bool before_;
    std::unique_lock<std::mutex> lock_;
};

void* at_address(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

std::uintptr_t page_up(std::uintptr_t address, std::uintptr_t unit) {
    return (address + unit - 1) & ~(unit - 1);
}

// -1: unknown.
int node_of(std::uintptr_t address) {
    constexpr unsigned long node_of_address = 1 | 2;  // MPOL_F_NODE | MPOL_F_ADDR
    int node = -1;
    return syscall(SYS_get_mempolicy, &node, nullptr, 0ul, address, node_of_address) == 0 ? node : -1;
}

// Address space for pages that will take the place of others. Huge pages begin there as they do in the
// others.
class Replacement {
  public:
    explicit Replacement(const PageRange& pages)
        : pages_(pages), bytes_(pages.end - pages.begin), reserved_(bytes_ + huge_page_bytes) {
        void* const made =
            mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return;
        begin_ = static_cast<std::byte*>(made);
        place_ = begin_ + (pages.begin - reinterpret_cast<std::uintptr_t>(made)) % huge_page_bytes;
    }
    // What has left the place may be in use by another thread, for something else.
    ~Replacement() {
        if (begin_ == nullptr) return;
        std::byte* const behind = replaced_ ? place_ + bytes_ : place_;
        if (place_ > begin_) munmap(begin_, static_cast<std::size_t>(place_ - begin_));
        if (begin_ + reserved_ > behind)
            munmap(behind, static_cast<std::size_t>(begin_ + reserved_ - behind));
    }
    Replacement(const Replacement&) = delete;
    Replacement& operator=(const Replacement&) = delete;

    // Null: there is no room.
    void* place() const { return place_; }
    // Asks for pages on the NUMA nodes of those that they replace, looking at each `step`.
    void place_like(std::size_t step) const {
        unsigned here = 0;
        if (syscall(SYS_getcpu, nullptr, &here, nullptr) != 0) return;
        for (std::size_t at = 0; at < bytes_; at += step) {
            const int node = node_of(pages_.begin + at);
            if (node < 0 || node >= 64 || node == static_cast<int>(here)) continue;
            const unsigned long nodes = 1ul << node;
            constexpr int preferred = 1;  // MPOL_PREFERRED
            syscall(SYS_mbind, place_ + at, std::min(step, bytes_ - at), preferred, &nodes, 65ul, 0u);
        }
    }
    // As far as the system has some.
    void make_huge() const {
        static const std::size_t page = HugePages::system_page();
        if (page == 0) return;
        const HugePages pages(page);
        const auto from = reinterpret_cast<std::uintptr_t>(place_);
        for (std::uintptr_t at = page_up(from, page); at + page <= from + bytes_; at += page)
            if (pages.make(at) != 0) return;
    }
    // False: all is as it was. By the system call: mmap() would take the old pages away before it fails, and
    // UCX's function in the place of mremap() loses the last argument.
    bool replace() {
        replaced_ =
            syscall(SYS_mremap, place_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, pages_.begin) != -1;
        return replaced_;
    }

  private:
    const PageRange pages_;
    const std::size_t bytes_, reserved_;
    std::byte *begin_ = nullptr, *place_ = nullptr;
    bool replaced_ = false;
};

PageRange pages_inside(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t page) {
    const PageRange pages{page_up(begin, page), end & ~(page - 1)};
    return pages.begin < pages.end ? pages : PageRange{};
}

}  // namespace

// It exists before the first call of free() and after the last one: made by the compiler, and never
// destroyed.
union PageSharing::Kept {
    PageSharing one;
    constexpr Kept() : one() {}
    ~Kept() {}  // NOLINT(modernize-use-equals-default): that of a union would be deleted
};

PageSharing& PageSharing::of_process() {
    static constinit Kept kept;
    return kept.one;
}

void PageSharing::before_fork() {
    of_process().mutex_.lock();
    inside = true;  // the copies for the child come and go while the lock is held
}

void PageSharing::after_fork() {
    PageSharing& one = of_process();
    if (!one.shared_.empty()) one.stop();
    inside = false;
    one.mutex_.unlock();
}

// Its memory is private from now on (child_copies.h).
void PageSharing::in_child() {
    PageSharing& one = of_process();
    one.stop();
    one.shared_.clear();
    one.shared_bytes_ = 0;
    one.gone_.clear();
    one.lost_.clear();
    one.low_ = UINTPTR_MAX;
    one.high_ = 0;
    inside = false;
    one.mutex_.unlock();
}

void PageSharing::begin(Watched* watched) {
    // Handlers run in the reverse order before a fork, so this lock is taken before that of the copies.
    child_copies::prepare_for_forks();
    static const int once = pthread_atfork(before_fork, after_fork, in_child);
    (void)once;
    const Inside guard(mutex_);
    watched_ = watched;
    on_.store(is_file_size_allowed(all_addresses), std::memory_order_relaxed);
}

bool PageSharing::make_file() {
    if (file_) return true;
    pagemap_ = File(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    return pagemap_ && make_memory_file("offpath-pages", all_addresses, file_) == Status::ok;
}

void PageSharing::widen(std::uintptr_t begin, std::uintptr_t end) {
    low_.store(std::min(low_.load(std::memory_order_relaxed), begin), std::memory_order_relaxed);
    high_.store(std::max(high_.load(std::memory_order_relaxed), end), std::memory_order_relaxed);
}

bool PageSharing::claim(const void* session, std::vector<PageRange>& shared) {
    const Inside guard(mutex_);
    if (session_ == session) return true;
    if (session_ != nullptr) return false;
    session_ = session;
    gone_.clear();
    has_gone_.store(false, std::memory_order_release);
    shared = shared_;
    return true;
}

void PageSharing::release(const void* session) {
    const Inside guard(mutex_);
    if (session_ == session) session_ = nullptr;
}

bool PageSharing::used(std::uintptr_t begin, std::uintptr_t end) {
    if (!on() || end - begin < least_bytes) return false;
    const Inside guard(mutex_);
    Buffer* buffer = find(begin, end);
    if (buffer == nullptr) {
        buffer = &buffers_[oldest_++ % buffers_.size()];
        *buffer = {begin, end, 0, false};
        widen(begin, end);
    }
    return !buffer->done && ++buffer->uses >= uses_before;
}

PageSharing::Buffer* PageSharing::find(std::uintptr_t begin, std::uintptr_t end) {
    const auto found = std::ranges::find_if(
        buffers_, [&](const Buffer& each) { return each.begin == begin && each.end == end; });
    return found == buffers_.end() ? nullptr : &*found;
}

// The first pages that are not shared yet.
PageRange PageSharing::missing(std::uintptr_t begin, std::uintptr_t end) const {
    PageRange left{begin, end};
    for (const PageRange& each : shared_) {
        if (each.end <= left.begin) continue;
        if (each.begin >= left.end) break;
        if (each.begin > left.begin) return {left.begin, each.begin};
        left.begin = each.end;
    }
    return left.begin < left.end ? left : PageRange{};
}

PageRange PageSharing::share(std::uintptr_t begin, std::uintptr_t end) {
    if (!on()) return {};
    const Inside guard(mutex_);
    Buffer* const known = find(begin, end);
    if (known == nullptr || known->done || known->uses < uses_before) return {};
    Buffer& buffer = *known;
    const PageRange inner = pages_inside(begin, end, page_bytes());
    PageRange pages = missing(inner.begin, inner.end);
    buffer.done = true;  // unless there is more
    if (pages.end - pages.begin < least_bytes || shared_bytes() >= most_bytes || is_on_stack(begin))
        return {};
    const auto overlaps = [&](const PageRange& each) { return each.begin < end && begin < each.end; };
    if (std::ranges::any_of(lost_, overlaps)) return {};
    if (!no_device_is_open() || !watched_()) {
        stop();
        return {};
    }
    const std::size_t page = page_of_plain_memory(pages.begin, pages.end);
    if (page == 0) return {};
    pages = pages_inside(pages.begin, pages.end, page);
    if (pages.end - pages.begin < least_bytes) return {};
    if (pages.end - pages.begin > most_at_a_time) {
        pages.end = pages.begin + most_at_a_time;
        buffer.done = false;
    }
    if (!make_file()) stop();
    if (!on() || !move(pages)) {
        buffer.done = true;
        return {};
    }
    return pages;
}

// Other threads may read the pages at any time, and nobody writes to them.
bool PageSharing::move(const PageRange& pages) {
    const auto offset = static_cast<off_t>(pages.begin);
    const std::size_t bytes = pages.end - pages.begin;
    Replacement made(pages);
    if (made.place() == nullptr ||
        mmap(made.place(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_.get(),
             offset) == MAP_FAILED)
        return not_moved(pages);
    made.place_like(step_bytes);
    if (madvise(made.place(), bytes, MADV_POPULATE_WRITE) != 0) return not_moved(pages);
    made.make_huge();
    std::memcpy(made.place(), at_address(pages.begin), bytes);
    if (!made.replace()) return not_moved(pages);
    child_copies::note(at_address(pages.begin), bytes, file_.get(), offset);
    const auto place = std::ranges::lower_bound(shared_, pages.begin, {}, &PageRange::begin);
    shared_.insert(place, pages);
    shared_bytes_ += bytes;
    most_shared_bytes_ = std::max(most_shared_bytes(), shared_bytes());
    return true;
}

bool PageSharing::not_moved(const PageRange& pages) {
    log::debug("{} bytes at {:#x} stay private: {}", pages.end - pages.begin, pages.begin,
               std::strerror(errno));
    punch(pages);
    return false;
}

void PageSharing::punch(const PageRange& pages) {
    (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(pages.begin),
                    static_cast<off_t>(pages.end - pages.begin));
}

void PageSharing::changes(std::uintptr_t begin, std::uintptr_t end, Change change) {
    if (inside || begin >= end) return;
    const int error = errno;
    {
        const Inside guard(mutex_);
        forget_uses(begin, end);
        // What ends with a block shares its first and last page with other blocks.
        const PageRange pages = change == Change::gone
                                    ? PageRange{begin & ~(page_bytes() - 1), page_up(end, page_bytes())}
                                    : pages_inside(begin, end, page_bytes());
        remove(pages, change);
    }
    errno = error;
}

void PageSharing::forget_uses(std::uintptr_t begin, std::uintptr_t end) {
    for (Buffer& buffer : buffers_)
        if (buffer.begin < end && begin < buffer.end) buffer = {};
}

void PageSharing::remove(PageRange pages, Change change) {
    for (std::size_t i = 0; i < shared_.size();) {
        const PageRange each = shared_[i];
        const PageRange ends{std::max(each.begin, pages.begin), std::min(each.end, pages.end)};
        const bool stays = change == Change::dropped || change == Change::kept;
        if (ends.begin >= ends.end || (stays && !make_private(ends, change == Change::kept))) {
            ++i;
            continue;
        }
        shared_.erase(shared_.begin() + static_cast<std::ptrdiff_t>(i));
        child_copies::forget(at_address(each.begin));
        for (const PageRange& left : {PageRange{each.begin, ends.begin}, PageRange{ends.end, each.end}}) {
            if (left.begin >= left.end) continue;
            child_copies::note(at_address(left.begin), left.end - left.begin, file_.get(),
                               static_cast<off_t>(left.begin));
            shared_.insert(shared_.begin() + static_cast<std::ptrdiff_t>(i++), left);
        }
        shared_bytes_ -= ends.end - ends.begin;
        // What was moved unseen may be in use elsewhere. So nothing else may come to its place in the file.
        if (change == Change::unseen)
            lost_.push_back(ends);
        else
            punch(ends);
        gone_.push_back(ends);
        has_gone_.store(true, std::memory_order_release);
    }
}

// False: there was no memory for it, and the pages stay shared.
bool PageSharing::make_private(const PageRange& pages, bool keep) {
    const std::size_t bytes = pages.end - pages.begin;
    Replacement made(pages);
    if (made.place() == nullptr || mprotect(made.place(), bytes, PROT_READ | PROT_WRITE) != 0) return false;
    if (keep) std::memcpy(made.place(), at_address(pages.begin), bytes);
    return made.replace();
}

void PageSharing::refused(const PageRange& pages) {
    log::debug("the device does not take pages of ordinary memory");
    stop();
    changes(pages.begin, pages.end, Change::kept);
}

void PageSharing::check(std::uintptr_t begin, std::uintptr_t end) {
    if (!concerns(begin, end)) return;
    const Inside guard(mutex_);
    begin &= ~(page_bytes() - 1);
    while (begin < end) {
        const PageRange missed = first_shared_but_not_mapped(begin, end);
        if (missed.begin == missed.end) return;
        log::debug("{} bytes at {:#x} are no longer shared", missed.end - missed.begin, missed.begin);
        forget_uses(missed.begin, missed.end);
        remove(missed, Change::unseen);
        begin = missed.end;
    }
}

bool PageSharing::has(const PageRange& pages) {
    const Inside guard(mutex_);
    return missing(pages.begin, pages.end).end == 0;
}

// Neighbouring pages; empty: there are none.
PageRange PageSharing::first_shared_but_not_mapped(std::uintptr_t begin, std::uintptr_t end) const {
    std::array<std::uint64_t, 512> entries;
    PageRange missed;
    for (const PageRange& each : shared_) {
        const PageRange pages{std::max(begin, each.begin), std::min(page_up(end, page_bytes()), each.end)};
        for (std::uintptr_t address = pages.begin; address < pages.end;) {
            const std::size_t count =
                std::min<std::size_t>(entries.size(), (pages.end - address) / page_bytes());
            const auto wanted = static_cast<ssize_t>(count * sizeof entries[0]);
            if (pread(pagemap_.get(), entries.data(), static_cast<std::size_t>(wanted),
                      static_cast<off_t>(address / page_bytes() * sizeof entries[0])) != wanted)
                std::ranges::fill(entries, 0);
            for (std::size_t i = 0; i < count; ++i, address += page_bytes()) {
                const bool mapped = is_of_a_file(address, entries[i]);
                if (mapped && missed.end != 0) return missed;
                if (mapped) continue;
                if (missed.end != 0 && missed.end != address) return missed;
                missed = {missed.end != 0 ? missed.begin : address, address + page_bytes()};
            }
        }
    }
    return missed;
}

// A page that is not there may have been swapped out. To read it brings it back.
bool PageSharing::is_of_a_file(std::uintptr_t address, std::uint64_t entry) const {
    if ((entry & pagemap::present) == 0 &&
        (madvise(at_address(address), page_bytes(), MADV_POPULATE_READ) != 0 ||
         pread(pagemap_.get(), &entry, sizeof entry,
               static_cast<off_t>(address / page_bytes() * sizeof entry)) != sizeof entry))
        return false;
    return (entry & pagemap::of_a_file) != 0;
}

bool PageSharing::take_gone(const void* session, PageRange& pages) {
    const Inside guard(mutex_);
    if (session != session_ || gone_.empty()) return false;
    pages = gone_.back();
    gone_.pop_back();
    has_gone_.store(!gone_.empty(), std::memory_order_release);
    return true;
}

}  // namespace offpath::memory
