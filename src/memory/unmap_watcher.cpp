#include "memory/unmap_watcher.h"

#include "base/log.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace offpath::memory {

namespace {

// Events come for every registered range. Of the modes, write protection is the one that changes nothing for
// who uses the memory as long as no page is protected.
constexpr std::uint64_t features =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

Status open_events(File& file, std::string& why_not) {
    File opened(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
    if (!opened) {
        why_not = fmt::format("userfaultfd: {}", std::strerror(errno));
        return Status::unsupported;
    }
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    if (ioctl(opened.get(), UFFDIO_API, &api) != 0 || (api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) == 0) {
        why_not = "userfaultfd: this kernel lacks unmap events or write protection";
        return Status::unsupported;
    }
    file = std::move(opened);
    return Status::ok;
}

// Detaching a System V segment raises no event. Such mappings are named in the process's map.
bool touches_system_v(std::uintptr_t begin, std::uintptr_t end) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/SYSV") == std::string::npos) continue;
        char* rest = nullptr;
        const std::uintptr_t from = std::strtoull(line.c_str(), &rest, 16);
        const std::uintptr_t to = std::strtoull(rest + 1, nullptr, 16);
        if (from < end && begin < to) return true;
    }
    return false;
}

}  // namespace

void UnmapWatcher::Events::add(const Event& event) {
    if (count > 0 && list[0].bytes == SIZE_MAX) return;
    if (event.bytes == SIZE_MAX || count == capacity) {
        list[0] = {0, SIZE_MAX};
        count = 1;
        return;
    }
    list[count++] = event;
}

UnmapWatcher::~UnmapWatcher() {
    if (fork_.in_child()) {
        if (thread_.joinable()) thread_.detach();  // it exists in the parent only
        return;
    }
    rest();
}

Status UnmapWatcher::probe(std::string& why_not) {
    File file;
    return open_events(file, why_not);
}

Status UnmapWatcher::start() {
    std::string why_not;
    if (const Status status = open_events(events_fd_, why_not); status != Status::ok) {
        log::debug("unmaps cannot be watched: {}", why_not);
        return status;
    }
    stop_ = File(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_) {
        log::error("eventfd: {}", std::strerror(errno));
        events_fd_ = File();
        return Status::system;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status status = Status::ok;
    try {
        watching_.store(events_fd_.get(), std::memory_order_release);
        thread_ = std::thread([this, events = events_fd_.get(), stop = stop_.get()] { run(events, stop); });
    } catch (const std::system_error& error) {
        log::error("the thread that watches unmaps: {}", error.what());
        watching_.store(-1, std::memory_order_release);
        events_fd_ = File();
        status = Status::system;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
}

Status UnmapWatcher::watch(const void* address, std::size_t bytes) {
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    if (bytes == 0 || first > UINTPTR_MAX - bytes - page) return Status::invalid;
    if (fork_.in_child()) return Status::unsupported;
    const std::uintptr_t begin = first / page * page;
    const std::uintptr_t end = (first + bytes + page - 1) / page * page;
    if (touches_system_v(begin, end)) return Status::unsupported;
    std::lock_guard lock(lifetime_);
    if (!thread_.joinable()) {
        if (const Status status = start(); status != Status::ok) return status;
    }
    uffdio_register range{};
    range.range = {begin, end - begin};
    range.mode = UFFDIO_REGISTER_MODE_WP;
    return ioctl(events_fd_.get(), UFFDIO_REGISTER, &range) == 0 ? Status::ok : Status::unsupported;
}

void UnmapWatcher::rest() {
    std::lock_guard lock(lifetime_);
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
    watching_.store(-1, std::memory_order_release);
    events_fd_ = File();  // ends the watching of every range, and wakes who waits to be noted
    stop_ = File();
}

// Nothing here may allocate, free or log: a thread that unmaps watched memory waits for it.
void UnmapWatcher::run(int events, int stop) {
    pthread_setname_np(pthread_self(), "offpath-unmaps");
    for (;;) {
        pollfd ready[2] = {{events, POLLIN, 0}, {stop, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
        if (ready[1].revents != 0) return;
        if (ready[0].revents == 0) continue;
        // A reported call returns as soon as its event has been read; by then noted_ must have
        // moved, and whoever sees that waits for the lock until the event is in the list.
        std::lock_guard lock(events_mutex_);
        noted_.fetch_add(1, std::memory_order_seq_cst);
        uffd_msg message;
        while (read(events, &message, sizeof message) == static_cast<ssize_t>(sizeof message)) {
            if (message.event == UFFD_EVENT_UNMAP || message.event == UFFD_EVENT_REMOVE)
                events_.add({message.arg.remove.start, message.arg.remove.end - message.arg.remove.start});
            else if (message.event == UFFD_EVENT_REMAP) {
                events_.add({message.arg.remap.from, message.arg.remap.len});
                events_.add({message.arg.remap.to, message.arg.remap.len});
            }
        }
    }
}

// The kernel unmaps first and queues the event then; in between, another thread may get the same address.
// While an event is on its way, this call, which has no argument and so does nothing, fails with EAGAIN
// instead of EFAULT.
void UnmapWatcher::settle(int events) {
    while (ioctl(events, UFFDIO_WRITEPROTECT, nullptr) != 0 && errno == EAGAIN)
        sched_yield();
}

UnmapWatcher::Events UnmapWatcher::take() {
    std::lock_guard lock(events_mutex_);
    Events events = events_;
    events.noted = noted_.load(std::memory_order_seq_cst);
    events_.count = 0;
    return events;
}

}  // namespace offpath::memory
