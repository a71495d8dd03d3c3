// The C library's calls by which memory of the program ends, moves or is given back. Each passes on what it
// is asked. The pages of a shared buffer become private before their block is freed, so the allocator's own
// calls never meet a shared page.
//
// A block that is smaller than the least shared buffer holds none, so most calls of free() cost a look at the
// block's size.
#include "memory/page_sharing.h"

#include "base/environment.h"
#include "program_memory/sharing.h"
#include "runtime/runtime.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

namespace {

using offpath::memory::PageSharing;
using Change = PageSharing::Change;

// The next definition of a function after this one. The search itself may free memory; to that call it does
// not exist yet.
template <typename Function>
class Next {
  public:
    constexpr explicit Next(const char* name) : name_(name) {}
    Function* operator*() {
        if (Function* const known = found_.load(std::memory_order_relaxed); known != nullptr) return known;
        static thread_local bool searching = false;
        if (searching) return nullptr;
        searching = true;
        auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
        searching = false;
        found_.store(found, std::memory_order_relaxed);
        return found;
    }

  private:
    const char* const name_;
    std::atomic<Function*> found_{nullptr};
};

constinit Next<int(void*, std::size_t)> next_munmap("munmap");
constinit Next<void*(void*, std::size_t, int, int, int, off_t)> next_mmap("mmap");
constinit Next<void*(void*, std::size_t, std::size_t, int, ...)> next_mremap("mremap");
constinit Next<int(void*, std::size_t, int)> next_madvise("madvise");
constinit Next<void(void*)> next_free("free");
constinit Next<void*(void*, std::size_t)> next_realloc("realloc");
constinit Next<std::size_t(void*)> next_usable_size("malloc_usable_size");

void changes(const void* address, std::size_t bytes, Change change) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    PageSharing& sharing = PageSharing::of_process();
    if (bytes > 0 && begin + bytes > begin && sharing.concerns(begin, begin + bytes))
        sharing.changes(begin, begin + bytes, change);
}

void block_changes(void* block, Change change) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    if (block == nullptr || !PageSharing::of_process().concerns(begin, begin + 1)) return;
    auto* const usable_size = *next_usable_size;
    const std::size_t bytes = usable_size != nullptr ? usable_size(block) : 0;
    if (bytes >= PageSharing::least_bytes) changes(block, bytes, change);
}

}  // namespace

extern "C" {

OFFPATH_API int munmap(void* address, std::size_t bytes) noexcept {
    const int result = (*next_munmap)(address, bytes);
    if (result == 0) changes(address, bytes, Change::gone);
    return result;
}

OFFPATH_API void* mmap(void* address, std::size_t bytes, int rights, int flags, int fd,
                       off_t offset) noexcept {
    void* const made = (*next_mmap)(address, bytes, rights, flags, fd, offset);
    if (made != MAP_FAILED && (flags & MAP_FIXED) != 0) changes(made, bytes, Change::gone);
    return made;
}

OFFPATH_API void* mmap64(void* address, std::size_t bytes, int rights, int flags, int fd,
                         off64_t offset) noexcept {
    return mmap(address, bytes, rights, flags, fd, offset);
}

OFFPATH_API void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
    void* place = nullptr;
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
        va_list more;
        va_start(more, flags);
        place = va_arg(more, void*);
        va_end(more);
    }
    changes(address, bytes, Change::kept);
    void* const made = (*next_mremap)(address, bytes, new_bytes, flags, place);
    if (made != MAP_FAILED) changes(made, new_bytes, Change::gone);
    return made;
}

OFFPATH_API int madvise(void* address, std::size_t bytes, int advice) noexcept {
    if (advice == MADV_DONTNEED || advice == MADV_FREE) changes(address, bytes, Change::dropped);
    return (*next_madvise)(address, bytes, advice);
}

OFFPATH_API void free(void* block) noexcept {
    block_changes(block, Change::dropped);
    if (auto* const passed_on = *next_free; passed_on != nullptr) passed_on(block);
}

OFFPATH_API void* realloc(void* block, std::size_t bytes) noexcept {
    block_changes(block, Change::kept);
    return (*next_realloc)(block, bytes);
}

OFFPATH_API void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept {
    std::size_t all = 0;
    if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(block, all);
    errno = ENOMEM;
    return nullptr;
}

}  // extern "C"

namespace offpath::mpi {
namespace {

// Whether the program's calls come here first.
bool is_first(const char* name) {
    static const char mark = 0;
    Dl_info first{}, ours{};
    return dladdr(dlsym(RTLD_DEFAULT, name), &first) != 0 && dladdr(&mark, &ours) != 0 &&
           first.dli_fbase == ours.dli_fbase;
}

}  // namespace

void begin_sharing() {
    if (environment::text("OFFPATH_BACK_END", "auto") == "cma") return;
    for (const char* name :
         {"munmap", "mmap", "mmap64", "mremap", "madvise", "free", "realloc", "reallocarray"})
        if (!is_first(name)) return;
    PageSharing::of_process().begin();
}

void end_sharing() {
    PageSharing::of_process().stop();
}

}  // namespace offpath::mpi
