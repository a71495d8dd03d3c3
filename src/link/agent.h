// LinkAgent: the thread at the client's end of a link, for when the program does not progress it: it sleeps
// until the transport or wake() has something, and costs nothing meanwhile. Ownership: the link's end, which
// must outlive the thread. Threads: start(), stop() and destruction by the owner; the rest by any.
#pragma once

#include "base/status.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace offpath::link {

class LinkAgent {
  public:
    class Work {
      public:
        virtual ~Work() = default;
        // Moves everything on, on the agent's thread. How many ms to sleep at most, -1: until an event;
        // nothing: there is more to do.
        virtual std::optional<int> work_for_agent() = 0;
    };

    explicit LinkAgent(Work& work) : work_(work) {}
    ~LinkAgent();
    LinkAgent(const LinkAgent&) = delete;
    LinkAgent& operator=(const LinkAgent&) = delete;

    // `event_fd` is the transport's. system with `problem`.
    Status start(int event_fd, std::string& problem);
    // Waits for the end of the thread.
    void stop();
    void wake() const;
    // Whether the transport's events wake it. False: that cannot be changed.
    bool watch(bool transport_too) const;

    double cpu_s() const;
    std::uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }

  private:
    void run();

    Work& work_;
    int event_fd_ = -1, epoll_ = -1, bell_ = -1;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> wakeups_{0};
    std::thread thread_;
};

}  // namespace offpath::link
