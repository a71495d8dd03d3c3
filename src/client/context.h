// The context: everything that a process holds of its attachment. The C API's calls are thin: they check
// their arguments, take the lock, and use what is here.
//
// Threads: with OFFPATH_THREADS_MULTIPLE, and while the context is shared, lock() serialises callers;
// requests are tested without it. Losing the proxy: found out by the socket or the channel, looked at from
// waits and from repeated tests. Then every operation ends with PEER_LOST, and nothing can be started any
// more.
#pragma once

#include "base/clock.h"
#include "client/attach.h"
#include "client/bootstrap.h"
#include "client/direct_paths.h"
#include "client/request.h"
#include "client/schedule_cache.h"
#include "client/team.h"
#include "client/windows.h"
#include "memory/host_allocator.h"

#include <offpath/compute.h>
#include <offpath/context.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

struct offpath_region {
    offpath_context* context = nullptr;
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t exported = 0;  // the device's number for it; 0: it is memory as any other
};

struct offpath_kernel {
    offpath_context* context = nullptr;
    std::uint64_t id = 0;
};

struct offpath_context {
    offpath_context(offpath::client::Attachment attachment, bool threads, std::uint64_t spin_us);

    std::unique_lock<std::mutex> lock() {
        return threads_ || shared_.load(std::memory_order_relaxed) ? std::unique_lock(mutex_)
                                                                   : std::unique_lock<std::mutex>();
    }
    // Written by the thread that owns the context, outside of lock(), so what lock() decides holds until its
    // end. Other threads learn of it from that thread (offpath_context_share).
    void share(bool on) { shared_.store(on, std::memory_order_relaxed); }

    // Appends a command, waiting while the ring is full. peer_lost when the proxy is gone. Under the lock.
    offpath::Status post(const offpath::control::Command& command);
    void ring() { doorbells += channel().ring(); }
    // A request that is ready to be named in a command; waits while all slots are in use. Under the lock.
    offpath::Status new_request(offpath_request** request);
    // Starts a schedule on a team. Takes `owned` over. Under the lock. `used` tells mem_deregister which
    // memory the operation touches.
    offpath::Status start(offpath_team& team, const offpath::client::RegisteredSchedule& schedule,
                          std::span<const offpath::control::BufferRange> buffers,
                          std::span<const offpath_request::Used> used, std::unique_ptr<std::byte[]> owned,
                          offpath_request** request);
    offpath::control::BufferRange resolve(const void* address, std::uint64_t bytes) const;

    offpath::Status test(offpath_request& request);
    offpath::Status wait(offpath_request& request);
    // Sleeps at most `limit_ns`, without spinning.
    offpath::Status wait_for(offpath_request& request, std::uint64_t limit_ns);
    // Whether the proxy is gone; looks at most every 100 ms. Not under the lock.
    bool lost();
    // Sleeps until `over()`, which is called under the lock after whatever has completed was taken over.
    // Losing the proxy completes everything. Not under the lock.
    template <typename Over>
    void sleep_until(Over&& over) {
        while (true) {
            const std::uint32_t sequence = channel().enter_wait();
            {
                auto guard = lock();
                requests.sweep();
                if (over()) {
                    channel().leave_wait();
                    return;
                }
            }
            channel().sleep(sequence, sleep_ns);
            channel().leave_wait();
            lost();
        }
    }

    // Takes what comes by direct paths until `over()`, which is called under the lock. Spins first. Not under
    // the lock.
    template <typename Over>
    void wait_direct(Over&& over) {
        const std::uint64_t begun_ns = offpath::SteadyClock().now_ns();
        while (true) {
            {
                auto guard = lock();
                direct->progress();
                if (over()) return;
            }
            if (offpath::SteadyClock().now_ns() - begun_ns > direct_spins * spin_ns_) sleep_direct();
        }
    }

    // One question to the daemon and its answer. Not under the lock.
    offpath::Status ask(const offpath::control::Message& question, std::span<const int> descriptors,
                        std::uint64_t region, offpath::control::RegionReply& reply);

    offpath::Status ask(const offpath::control::Message& question, std::uint64_t kernel,
                        offpath::control::KernelReply& reply);

    offpath::control::ClientChannel& channel() { return *attachment.channel; }

    std::uint32_t rank = 0, size = 1;
    bool all_local =
        true;  // no device of the job has an operating system, and perhaps an architecture, of its own
    offpath::client::Attachment attachment;
    // Kept for the launcher's sake; null once the process has left it.
    std::unique_ptr<offpath::client::Bootstrap> bootstrap;
    offpath::client::RequestTable requests;
    std::unique_ptr<offpath::client::DirectPaths> direct;  // null: all goes through the own proxy
    offpath::client::ScheduleCache schedules;
    offpath::memory::HostAllocator allocator;
    std::unordered_map<offpath_team*, std::unique_ptr<offpath_team>> teams;
    std::unordered_map<offpath_region*, std::unique_ptr<offpath_region>> regions;
    std::unordered_map<offpath_kernel*, std::unique_ptr<offpath_kernel>> kernels;
    std::uint64_t last_kernel = 0;
    std::unordered_map<offpath_group*, std::unique_ptr<offpath_group>> groups;
    std::unordered_map<offpath_window*, std::unique_ptr<offpath_window>> windows;
    std::uint32_t unwatched = 0;  // sum over the windows
    std::set<std::uint64_t> team_ids;
    offpath_team* world = nullptr;

    std::uint64_t operations = 0, bytes = 0, doorbells = 0, direct_operations = 0;
    // Scratch of the posting calls.
    std::vector<std::uint64_t> key;
    std::vector<offpath::control::BufferRange> ranges;

  private:
    static constexpr std::uint64_t sleep_ns = 100'000'000;
    // Calls `take` with each message until it has taken one, which is the answer.
    template <typename Take>
    offpath::Status ask_until(const offpath::control::Message& question, std::span<const int> descriptors,
                              Take&& take);
    // An answer takes a turn of the network.
    static constexpr std::uint64_t direct_spins = 3;
    bool sleep_direct();
    void spin(const offpath_request& request);
    void sleep_while_pending(offpath_request& request, std::uint64_t limit_ns);
    offpath::Status take(offpath_request& request);
    bool proxy_gone();
    bool lost_locked();
    void declare_lost();

    const bool threads_;
    std::atomic<bool> shared_{false};
    const std::uint64_t spin_ns_;
    std::mutex mutex_;
    std::mutex socket_mutex_;
    std::atomic<bool> lost_{false};
    std::atomic<std::uint64_t> checked_ns_{0};
    std::atomic<std::uint32_t> idle_tests_{0};
};
