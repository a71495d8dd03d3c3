#include "base/child_copies.h"

#include "base/file_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace offpath::child_copies {
namespace {

struct Noted {
    std::size_t bytes = 0;
    int fd = -1;
    off_t offset = 0;
    FileDescriptor own;         // the descriptor, if it is a copy
    std::byte* copy = nullptr;  // between prepare() and the end of fork()
};

struct List {
    std::mutex mutex;
    std::map<std::byte*, Noted> mappings;
};

// For the process's life: a thread may fork while the process ends.
List& list() {
    static List& made = *new List;
    return made;
}

// From the file, since that makes no page of the parent's mapping present. False: it is not all there.
bool copy_from_file(std::byte* copy, const Noted& noted) {
    const off_t end = noted.offset + static_cast<off_t>(noted.bytes);
    for (off_t at = noted.offset; (at = lseek(noted.fd, at, SEEK_DATA)) >= 0 && at < end;) {
        off_t hole = lseek(noted.fd, at, SEEK_HOLE);
        if (hole < 0 || hole > end) hole = end;
        while (at < hole) {
            const ssize_t got =
                pread(noted.fd, copy + (at - noted.offset), static_cast<std::size_t>(hole - at), at);
            if (got <= 0) return false;
            at += got;
        }
    }
    return true;
}

// The list stays locked until fork() has ended, in the parent and in the child.
void prepare() {
    list().mutex.lock();
    for (auto& [begin, noted] : list().mappings) {
        void* const made = mmap(nullptr, noted.bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) continue;
        noted.copy = static_cast<std::byte*>(made);
        madvise(made, noted.bytes, MADV_HUGEPAGE);
        if (noted.fd < 0 || !copy_from_file(noted.copy, noted)) std::memcpy(noted.copy, begin, noted.bytes);
    }
}

void end_in_parent() {
    for (auto& [begin, noted] : list().mappings)
        if (noted.copy != nullptr) munmap(std::exchange(noted.copy, nullptr), noted.bytes);
    list().mutex.unlock();
}

void end_in_child() {
    for (auto& [begin, noted] : list().mappings) {
        // Not mremap(): UCX puts a function of its own in its place, which loses the last argument.
        if (noted.copy != nullptr)
            syscall(SYS_mremap, noted.copy, noted.bytes, noted.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin);
        else
            mmap(begin, noted.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                 0);
    }
    // The memory is private from now on, so the child's own children need nothing.
    list().mappings.clear();
    list().mutex.unlock();
}

void add(void* begin, Noted noted) {
    prepare_for_forks();
    const std::lock_guard lock(list().mutex);
    list().mappings.insert_or_assign(static_cast<std::byte*>(begin), std::move(noted));
}

}  // namespace

void prepare_for_forks() {
    static const int once = pthread_atfork(prepare, end_in_parent, end_in_child);
    (void)once;
}

void note(void* begin, std::size_t bytes, int fd, off_t offset) {
    add(begin, {bytes, fd, offset, {}, nullptr});
}

void note_copy(void* begin, std::size_t bytes, int fd) {
    FileDescriptor own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    const int number = own.get();
    add(begin, {bytes, number, 0, std::move(own), nullptr});
}

void forget(const void* begin) {
    const std::lock_guard lock(list().mutex);
    list().mappings.erase(static_cast<std::byte*>(const_cast<void*>(begin)));
}

}  // namespace offpath::child_copies
