// The C library's calls by which memory of the program ends, moves or is given back. Each passes on what it
// is asked. The pages of a shared buffer become private before their block is freed, so the allocator's own
// calls never meet a shared page.
//
// free() and its relatives are defined here, before the C library's. A block that is smaller than the least
// shared buffer holds none, so most calls cost a look at the block's size. Calls that map memory are caught
// at their callers instead: libraries such as UCX look these functions up by name, and then change their
// code, to see what ends in the C library itself.
#include "base/environment.h"
#include "memory/page_sharing.h"
#include "program_memory/sharing.h"
#include "runtime/loaded_object.h"
#include "runtime/runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

namespace offpath::mpi {
namespace {

using memory::PageSharing;
using Change = PageSharing::Change;

void changes(const void* address, std::size_t bytes, Change change) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    PageSharing& sharing = PageSharing::of_process();
    if (bytes > 0 && begin + bytes > begin && sharing.concerns(begin, begin + bytes))
        sharing.changes(begin, begin + bytes, change);
}

// What callers of these functions call.
int watched_munmap(void* address, std::size_t bytes) {
    const int result = munmap(address, bytes);
    if (result == 0) changes(address, bytes, Change::gone);
    return result;
}

void* watched_mmap(void* address, std::size_t bytes, int rights, int flags, int fd, off_t offset) {
    void* const made = mmap(address, bytes, rights, flags, fd, offset);
    if (made != MAP_FAILED && (flags & MAP_FIXED) != 0) changes(made, bytes, Change::gone);
    return made;
}

void* watched_mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) {
    void* place = nullptr;
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
        va_list more;
        va_start(more, flags);
        place = va_arg(more, void*);
        va_end(more);
    }
    changes(address, bytes, Change::kept);
    void* const made = mremap(address, bytes, new_bytes, flags, place);
    if (made == MAP_FAILED) return made;
    changes(address, bytes, Change::unseen);  // where there was no memory to make them private
    if (made != address) changes(made, new_bytes, Change::gone);
    return made;
}

int watched_madvise(void* address, std::size_t bytes, int advice) {
    if (advice == MADV_DONTNEED || advice == MADV_FREE) changes(address, bytes, Change::dropped);
    return madvise(address, bytes, advice);
}

struct Watched {
    std::string_view name;
    std::uint64_t first;  // the definition that callers find
    std::uint64_t ours;
};

template <typename Function>
std::uint64_t address_of(Function* function) {
    return reinterpret_cast<std::uint64_t>(function);
}

const auto& watched_functions() {
    static_assert(sizeof(off_t) == sizeof(off64_t));
    static const std::array<Watched, 5> functions{
        {{"munmap", address_of(&munmap), address_of(&watched_munmap)},
         {"mmap", address_of(&mmap), address_of(&watched_mmap)},
         {"mmap64", address_of(&mmap64), address_of(&watched_mmap)},
         {"mremap", address_of(&mremap), address_of(&watched_mremap)},
         {"madvise", address_of(&madvise), address_of(&watched_madvise)}}};
    return functions;
}

const Watched* watched(std::string_view name) {
    const auto& all = watched_functions();
    const auto found = std::ranges::find(all, name, &Watched::name);
    return found == all.end() ? nullptr : &*found;
}

// Whether all calls of the process come here first. Objects that were opened since the last time are caught
// now. False: another library, or one of UCX's ways to see these calls, comes before.
bool all_calls_are_watched() {
    const std::vector<LoadedObject> objects = LoadedObject::all();
    bool foreign = objects.empty();
    const auto visit = [&](bool writes) {
        for (const LoadedObject& object : objects) {
            if (object.contains(reinterpret_cast<const void*>(&watched_munmap))) continue;
            const auto done = object.redirect([&](std::string_view name, std::uint64_t now) -> std::uint64_t {
                const Watched* const function = watched(name);
                if (function == nullptr || now == function->ours) return 0;
                foreign =
                    foreign || (now != function->first && !object.contains(reinterpret_cast<void*>(now)));
                return writes ? function->ours : 0;
            });
            foreign = foreign || done.failed;
        }
    };
    visit(false);
    if (!foreign) visit(true);
    return !foreign;
}

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

constinit Next<void(void*)> next_free("free");
constinit Next<void*(void*, std::size_t)> next_realloc("realloc");
constinit Next<std::size_t(void*)> next_usable_size("malloc_usable_size");

void block_changes(void* block, Change change) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    if (block == nullptr || !PageSharing::of_process().concerns(begin, begin + 1)) return;
    auto* const usable_size = *next_usable_size;
    const std::size_t bytes = usable_size != nullptr ? usable_size(block) : 0;
    if (bytes >= PageSharing::least_bytes) changes(block, bytes, change);
}

// Whether the program finds this library's definition.
bool is_first(const char* name) {
    static const char mark = 0;
    Dl_info first{}, ours{};
    return dladdr(dlsym(RTLD_DEFAULT, name), &first) != 0 && dladdr(&mark, &ours) != 0 &&
           first.dli_fbase == ours.dli_fbase;
}

}  // namespace

void begin_sharing() {
    if (environment::text("OFFPATH_BACK_END", "auto") == "cma") return;
    for (const char* name : {"free", "realloc", "reallocarray"})
        if (!is_first(name)) return;
    if (all_calls_are_watched()) PageSharing::of_process().begin(all_calls_are_watched);
}

void end_sharing() {
    PageSharing::of_process().stop();
}

extern "C" {

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

}  // namespace offpath::mpi
