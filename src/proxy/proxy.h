// Proxy: one worker of the device. It is a thread with a transport, an engine and the sessions of its
// clients. Its loop has bounded phases, in this order:
//
//   accept    take newcomers from the listener; periodically serve the sessions' sockets, keep those of
//             remote clients alive, and ask proxies that operations depend on for a sign of life
//   drain     execute the commands in the sessions' rings
//   advance   match messages and advance schedules (Engine::advance)
//   progress  advance the fabric, the links to remote hosts, direct callers and staged memory
//   complete  wake clients whose operations are done; release sessions that have ended
//   rest      if nothing moved: spin for a while, then sleep until something happens
//
// Ownership: the daemon owns proxies. Threads: the daemon's main thread makes the public calls; everything
// else happens on the proxy's own thread.
#pragma once

#include "base/patience.h"
#include "proxy/direct_port.h"
#include "proxy/host_side.h"
#include "proxy/newcomer.h"
#include "proxy/resting.h"
#include "proxy/session.h"
#include "proxy/status_page.h"
#include "transport/transport.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

struct epoll_event;

namespace offpath::proxy {

struct ProxyConfig {
    std::string node;
    std::uint32_t index = 0;
    int cpu = -1;  // to run on; -1: any
    std::uint64_t spin_us = 50;
    std::uint64_t stored_bytes = engine::Config{}.stored_bytes;  // of messages that no receive has met
    KernelSettings kernels;
    std::unique_ptr<transport::Transport> direct;  // for the DirectPort; null: there is none
    ShownProxy* shown = nullptr;                   // its part of the status page; null: there is none
};

class Proxy {
    static constexpr std::uint64_t longest_beat_interval_ns = 1'000'000'000;

  public:
    // Takes ownership of the transport and of the connections to remote hosts. The thread starts in start().
    Proxy(ProxyConfig config, std::unique_ptr<transport::Transport> transport, HostSide hosts);
    ~Proxy();
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;

    Status start(std::string& problem);
    void take(Newcomer newcomer);
    // Ends all sessions, telling their clients `why`, and then the thread. Waits for the thread, for about a
    // second at most.
    void stop(const std::string& why);

    // The number of sessions, including newcomers.
    std::uint32_t load() const { return load_.load(std::memory_order_relaxed); }

  private:
    void run();
    unsigned accept_sessions();
    unsigned drain_channels();
    unsigned advance_schedules();
    unsigned progress_fabric();
    void complete();
    void rest();

    void end_for_memory();
    void sleep_until_event();
    void serve_events(int timeout_ms);
    int wait_for_events(std::span<epoll_event> events, int timeout_ms);
    void tend_sessions();
    void beat();
    bool show();
    void show_now(std::uint64_t now_ns);
    void watch(int fd);
    void adopt(Newcomer newcomer);
    void drop(std::size_t i);

    const SteadyClock clock_;
    ProxyConfig config_;
    std::unique_ptr<transport::Transport> transport_;
    Identity identity_;
    std::unique_ptr<engine::Engine> engine_;
    HostSide hosts_;
    std::unique_ptr<DirectPort> direct_;  // null: ranks reach this proxy through their own only
    std::vector<std::unique_ptr<Session>> sessions_;
    FileDescriptor epoll_;
    Resting resting_;
    std::uint32_t rounds_ = 0, direct_rounds_ = 0;
    bool fabric_moved_ = false;
    std::uint64_t sockets_served_ns_ = 0, tended_ns_ = 0, beaten_ns_ = 0, shown_ns_ = 0;
    const std::uint64_t lost_after_ns_ = offpath::lost_after_ns();
    const std::uint64_t beat_interval_ns_ = std::min(lost_after_ns_ / 8, longest_beat_interval_ns);
    std::uint32_t remote_sessions_ = 0;
    bool trim_due_ = false;  // a session has ended since the heap was last trimmed
    bool ending_ = false;

    // Shared with the main thread.
    std::mutex mutex_;
    std::vector<Newcomer> inbox_;
    std::string stop_why_;
    std::atomic<bool> inbox_full_{false};
    std::atomic<bool> stop_{false};
    FileDescriptor inbox_event_;
    std::atomic<std::uint32_t> load_{0};
    std::thread thread_;
};

}  // namespace offpath::proxy
