#include "executable_data.h"

#include "base/child_copies.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace offpath::shmem {

namespace {

std::uintptr_t page_bytes() {
    static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

// The first object is the program; the search stops there.
int look_at_program(dl_phdr_info* info, std::size_t, void* result) {
    const std::uintptr_t page = page_bytes();
    std::uintptr_t protected_end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        // The loader protects only whole pages.
        if (header.p_type == PT_GNU_RELRO)
            protected_end = (info->dlpi_addr + header.p_vaddr + header.p_memsz) / page * page;
    }
    auto& range = *static_cast<DataRange*>(result);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
        std::uintptr_t begin = (info->dlpi_addr + header.p_vaddr) / page * page;
        const std::uintptr_t end =
            (info->dlpi_addr + header.p_vaddr + header.p_memsz + page - 1) / page * page;
        if (begin < protected_end && protected_end <= end) begin = protected_end;
        // Some linkers put the part that can be protected into a segment of its own. What is left of it and
        // the next segment are one range if they lie one behind the other; otherwise the larger one counts.
        const auto first = reinterpret_cast<std::uintptr_t>(range.begin);
        const std::uintptr_t last = first + range.bytes;
        if (begin < end && range.bytes > 0 && begin <= last && end >= last)
            range.bytes = end - first;
        else if (end - begin > range.bytes)
            range = {reinterpret_cast<std::byte*>(begin), end - begin};
    }
    return 1;
}

// While the contents are copied, a write by another thread faults. The fault handler waits for the end of the
// copy; then the thread repeats the write.
std::atomic<bool> moving{false};
DataRange moved;
struct sigaction former;

void wait_out(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (address - reinterpret_cast<std::uintptr_t>(moved.begin) >= moved.bytes) {
        sigaction(SIGSEGV, &former, nullptr);
        return;
    }
    while (moving.load(std::memory_order_acquire))
        sched_yield();
}

bool has_other_threads() {
    std::error_code error;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator it("/proc/self/task", error), end; !error && it != end;
         it.increment(error))
        ++count;
    return count != 1;
}

// Pages that contain only zeros stay out of the file. The comparison goes word by word: in a program built
// with AddressSanitizer, there is memory between the variables that its memcpy() must not read.
__attribute__((no_sanitize("address", "thread"))) void copy_pages(std::byte* to, const std::byte* from,
                                                                  std::size_t bytes) {
    const auto* const source = reinterpret_cast<const volatile std::uint64_t*>(from);
    auto* const target = reinterpret_cast<volatile std::uint64_t*>(to);
    const std::size_t page_words = page_bytes() / sizeof *source;
    for (std::size_t page = 0; page < bytes / sizeof *source; page += page_words) {
        std::uint64_t any = 0;
        for (std::size_t i = page; i < page + page_words; ++i)
            any |= source[i];
        if (any == 0) continue;
        for (std::size_t i = page; i < page + page_words; ++i)
            target[i] = source[i];
    }
}

}  // namespace

DataRange find_executable_data() {
    DataRange range;
    dl_iterate_phdr(look_at_program, &range);
    return range;
}

std::uint64_t executable_identity() {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    const auto add = [&hash](const void* bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
    };
    auto look = [](dl_phdr_info* info, std::size_t, void* self) {
        auto& sum = *static_cast<decltype(add)*>(self);
        sum(info->dlpi_phdr, sizeof *info->dlpi_phdr * info->dlpi_phnum);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& header = info->dlpi_phdr[i];
            // The notes include the build ID.
            if (header.p_type == PT_NOTE)
                sum(reinterpret_cast<const void*>(info->dlpi_addr + header.p_vaddr), header.p_memsz);
        }
        return 1;
    };
    dl_iterate_phdr(look, const_cast<void*>(static_cast<const void*>(&add)));
    return hash;
}

bool share_executable_data(const DataRange& range, MemoryFile& file, std::string& problem) {
    MemoryFile made;
    if (!MemoryFile::make("offpath-shmem-data", range.bytes, made, problem)) return false;
    std::byte* const copy = made.map(range.bytes);
    if (copy == nullptr) {
        problem = fmt::format("{} bytes cannot be mapped: {}", range.bytes, std::strerror(errno));
        return false;
    }
    const bool guarded = has_other_threads();
    if (guarded) {
        moved = range;
        moving.store(true, std::memory_order_release);
        struct sigaction waiting {};
        waiting.sa_sigaction = wait_out;
        waiting.sa_flags = SA_SIGINFO | SA_NODEFER;
        sigaction(SIGSEGV, &waiting, &former);
        mprotect(range.begin, range.bytes, PROT_READ);
    }
    copy_pages(copy, range.begin, range.bytes);
    const bool replaced = made.map_over(range.begin, range.bytes);
    if (!replaced) problem = fmt::format("mmap over the program's data: {}", std::strerror(errno));
    if (guarded) {
        if (!replaced) mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE);
        // The handler stays installed, because a fault may be about to arrive.
        moving.store(false, std::memory_order_release);
    }
    unmap(copy, range.bytes);
    if (replaced) {
        child_copies::note_copy(range.begin, range.bytes, made.get());
        file = std::move(made);
    }
    return replaced;
}

}  // namespace offpath::shmem
