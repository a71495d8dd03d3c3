#include "memory/shareable.h"

#include "memory/file.h"

#include <fcntl.h>

#include <iterator>
#include <map>
#include <mutex>
#include <utility>

namespace offpath::memory::shareable {
namespace {

struct Noted {
    Shareable mapping;
    File copy;  // of its descriptor, or none
};

struct List {
    std::mutex mutex;
    std::map<const std::byte*, Noted> mappings;
    std::uint64_t last = 0, ended = 0;
};

// For the process's life: other libraries may ask while the process ends.
List& shareable_list() {
    static List& made = *new List;
    return made;
}

void note_both(void* begin, std::size_t bytes, int fd, File copy) {
    List& list = shareable_list();
    std::lock_guard lock(list.mutex);
    list.mappings[static_cast<std::byte*>(begin)] = {{begin, bytes, fd, ++list.last, 0}, std::move(copy)};
}

}  // namespace

void note(void* begin, std::size_t bytes, int fd) {
    note_both(begin, bytes, fd, {});
}

void note_copy(void* begin, std::size_t bytes, int fd) {
    File copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    const int number = copy.get();
    if (copy) note_both(begin, bytes, number, std::move(copy));
}

void forget(const void* begin) {
    List& list = shareable_list();
    std::lock_guard lock(list.mutex);
    list.ended += list.mappings.erase(static_cast<const std::byte*>(begin));
}

bool find(const void* address, std::size_t bytes, Shareable& found) {
    List& list = shareable_list();
    const auto* const wanted = static_cast<const std::byte*>(address);
    std::lock_guard lock(list.mutex);
    found.ended = list.ended;
    const auto next = list.mappings.upper_bound(wanted);
    if (next == list.mappings.begin()) return false;
    const auto& [begin, noted] = *std::prev(next);
    const Shareable& mapping = noted.mapping;
    const auto offset = static_cast<std::size_t>(wanted - begin);
    if (offset > mapping.bytes || bytes > mapping.bytes - offset) return false;
    found = mapping;
    found.ended = list.ended;
    return true;
}

}  // namespace offpath::memory::shareable

bool offpath_find_shareable(const void* address, std::size_t bytes, offpath::memory::Shareable* found) {
    return offpath::memory::shareable::find(address, bytes, *found);
}
