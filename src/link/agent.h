// LinkAgent: the thread at the client's end of a link that makes progress when the program does not. It
// sleeps until the transport has an event or wake() is called, and uses no CPU meanwhile. Ownership: the
// link's end, which must outlive the thread. Threads: the owner calls start(), stop() and the destructor; any
// thread calls the rest.
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
        // Advances all work, on the agent's thread. Returns how many ms the agent may sleep (-1: until an
        // event), or nothing if there is more to do.
        virtual std::optional<int> work_for_agent() = 0;
    };

    explicit LinkAgent(Work& work) : work_(work) {}
    ~LinkAgent();
    LinkAgent(const LinkAgent&) = delete;
    LinkAgent& operator=(const LinkAgent&) = delete;

    // `event_fd` is the transport's. Errors: system, with `problem`.
    Status start(int event_fd, std::string& problem);
    // Stops the thread and waits for its end.
    void stop();
    void wake() const;
    // Sets whether the transport's events wake the agent. False: the change failed.
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
