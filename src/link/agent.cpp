#include "link/agent.h"

#include "base/own_thread.h"
#include "base/scheduling.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

namespace offpath::link {

Status LinkAgent::start(int event_fd, std::string& problem) {
    event_fd_ = event_fd;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (int fd : {bell_, event_fd_}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        if (epoll_ < 0 || bell_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
            problem = fmt::format("epoll and eventfd: {}", std::strerror(errno));
            return Status::system;
        }
    }
    try {
        thread_ = start_own_thread([this] { run(); });
    } catch (const std::system_error& error) {
        problem = fmt::format("the link's agent thread: {}", error.what());
        return Status::system;
    }
    return Status::ok;
}

LinkAgent::~LinkAgent() {
    stop();
    for (int fd : {epoll_, bell_})
        if (fd >= 0) close(fd);
}

void LinkAgent::stop() {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_seq_cst);
    wake();
    thread_.join();
}

void LinkAgent::wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(bell_, &one, sizeof one);
}

bool LinkAgent::watch(bool transport_too) const {
    epoll_event event{};
    if (transport_too) event.events = EPOLLIN;
    event.data.fd = event_fd_;
    return epoll_ctl(epoll_, EPOLL_CTL_MOD, event_fd_, &event) == 0;
}

double LinkAgent::cpu_s() const {
    clockid_t clock{};
    timespec used{};
    auto& thread = const_cast<std::thread&>(thread_);  // native_handle() is not const
    if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void LinkAgent::run() {
    pthread_setname_np(pthread_self(), "offpath-link");
    ask_for_short_slices();
    while (!stop_.load(std::memory_order_acquire)) {
        const std::optional<int> rest_ms = work_.work_for_agent();
        if (!rest_ms) continue;
        epoll_event events[2];
        const int count = epoll_wait(epoll_, events, 2, *rest_ms);
        wakeups_.fetch_add(1, std::memory_order_relaxed);
        for (int i = 0; i < count; ++i) {
            std::uint64_t rung = 0;
            if (events[i].data.fd == bell_) {
                [[maybe_unused]] const auto got = read(bell_, &rung, sizeof rung);
            }
        }
    }
}

}  // namespace offpath::link
