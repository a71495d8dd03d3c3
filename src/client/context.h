// The context: all state of a process's attachment. The calls of the C API are thin: they check their
// arguments, take the lock, and use the members here.
//
// Threads: with OFFPATH_THREADS_MULTIPLE, and while the context is shared, lock() serialises callers. Testing
// a request needs no lock.
//
// Loss of the proxy: the socket or the channel detects it; waits and repeated tests check for it. From then
// on every operation ends with PEER_LOST and nothing can be started.
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
#include "memory/huge_pages.h"
#include "memory/page_sharing.h"

#include <offpath/compute.h>
#include <offpath/context.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

struct offpath_region {
    offpath_context* context = nullptr;
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t exported = 0;  // the device's number for it; 0: ordinary memory
};

struct offpath_kernel {
    offpath_context* context = nullptr;
    std::uint64_t id = 0;
};

struct offpath_context {
    offpath_context(offpath::client::Attachment attachment, bool threads, std::uint64_t spin_us);
    ~offpath_context();

    std::unique_lock<std::mutex> lock() {
        return threads_ || shared_.load(std::memory_order_relaxed) ? std::unique_lock(mutex_)
                                                                   : std::unique_lock<std::mutex>();
    }
    // The thread that owns the context writes it outside lock(), so the decision of a lock() holds until its
    // end. Other threads learn of the change from that thread (offpath_context_share).
    void share(bool on) { shared_.store(on, std::memory_order_relaxed); }

    // Appends a command; waits while the ring is full. peer_lost: the proxy is gone. Needs the lock.
    offpath::Status post(const offpath::control::Command& command);
    void ring() { doorbells += channel().ring(); }
    // Makes a request that a command may name; waits while all slots are in use. Needs the lock.
    offpath::Status new_request(offpath_request** request);
    // Starts a schedule on a team and takes ownership of `owned`. `used` tells mem_deregister which memory
    // the operation touches. Needs the lock.
    offpath::Status start(offpath_team& team, const offpath::client::RegisteredSchedule& schedule,
                          std::span<const offpath::control::BufferRange> buffers,
                          std::span<const offpath_request::Used> used, std::unique_ptr<std::byte[]> owned,
                          offpath_request** request);
    offpath::control::BufferRange resolve(const void* address, std::uint64_t bytes) const;

    offpath::Status test(offpath_request& request);
    offpath::Status wait(offpath_request& request);
    // Sleeps for at most `limit_ns`, without spinning.
    offpath::Status wait_for(offpath_request& request, std::uint64_t limit_ns);
    // Whether the proxy is gone; checks at most every 100 ms. Must not hold the lock.
    bool lost();
    // Sleeps until `over()` is true. It is called under the lock, after new completions have been processed.
    // Losing the proxy completes everything. Must not hold the lock.
    template <typename Over>
    void sleep_until(Over&& over) {
        send_bundles();
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

    // Processes what arrives on direct paths until `over()`, called under the lock, is true. Spins first.
    // Must not hold the lock.
    template <typename Over>
    void wait_direct(Over&& over) {
        const std::uint64_t begun_ns = offpath::now_ns();
        while (true) {
            {
                auto guard = lock();
                direct->progress();
                if (over()) return;
            }
            if (offpath::now_ns() - begun_ns > direct_spins * spin_ns_) sleep_direct();
        }
    }

    // Sends one question to the daemon and receives its answer. Must not hold the lock.
    offpath::Status ask(const offpath::control::Message& question, std::span<const int> descriptors,
                        std::uint64_t region, offpath::control::RegionReply& reply);

    offpath::Status ask(const offpath::control::Message& question, std::uint64_t kernel,
                        offpath::control::KernelReply& reply);
    // From the first kernel on: what kernels print is printed here. Must not hold the lock.
    void take_kernel_texts();
    // Returns when this process has everything that its kernels have printed, and the reasons of their
    // failures. Must not hold the lock.
    offpath::Status ask_for_kernel_texts();
    // Must not hold the lock.
    offpath::Status ask(offpath::control::CopiesAsked& copies);

    offpath::control::ClientChannel& channel() { return *attachment.channel; }

    // Ends the session, and everything outstanding with it. ok: no device touches our memory any more. Must
    // not hold the lock.
    offpath::Status end_session(int timeout_ms);
    bool threads() const { return threads_; }

    std::uint32_t rank = 0, size = 1;
    std::string directory;  // of the daemon's socket
    bool all_local =
        true;  // no device of the job has an operating system, and perhaps an architecture, of its own
    offpath::client::Attachment attachment;
    // Kept because the launcher needs it; null once the process has left the launcher.
    std::unique_ptr<offpath::client::Bootstrap> bootstrap;
    offpath::client::RequestTable requests;
    std::unique_ptr<offpath::client::DirectPaths> direct;  // null: everything goes through the own proxy
    offpath::client::ScheduleCache schedules;
    offpath::memory::HostAllocator allocator;
    std::unordered_map<offpath_team*, std::unique_ptr<offpath_team>> teams;
    std::unordered_map<offpath_region*, std::unique_ptr<offpath_region>> regions;
    std::unordered_map<offpath_kernel*, std::unique_ptr<offpath_kernel>> kernels;
    std::uint64_t last_kernel = 0, last_question = 0;
    std::unordered_map<offpath_group*, std::unique_ptr<offpath_group>> groups;
    std::unordered_map<offpath_window*, std::unique_ptr<offpath_window>> windows;
    std::uint32_t unwatched = 0;  // sum over the windows
    std::set<std::uint64_t> team_ids;
    offpath_team* world = nullptr;

    // Of buffers that the proxy reaches by system calls only.
    offpath::memory::HugePages huge_pages;
    // An operation uses such a buffer, or only parts of it.
    void note_use(offpath_request& request, std::size_t place, bool all = true);

    std::uint64_t operations = 0, bytes = 0, doorbells = 0, direct_operations = 0;
    // Scratch buffers of the posting calls.
    std::vector<std::uint64_t> key;
    std::vector<offpath::control::BufferRange> ranges;

  private:
    static constexpr std::uint64_t sleep_ns = 100'000'000;
    static constexpr std::uint64_t help_ns = 500'000;  // the longest sleep while there may be parts to copy
    // Calls `take` with each message until it accepts one, which is the answer.
    template <typename Take>
    offpath::Status ask_until(const offpath::control::Message& question, std::span<const int> descriptors,
                              Take&& take);
    // Multiplies the spin time, because an answer takes a network round trip.
    static constexpr std::uint64_t direct_spins = 3;
    bool sleep_direct();
    void send_bundles();
    void spin(offpath_request& request);
    bool help(offpath_request& request);
    bool make_huge_page(const offpath_request& request);
    offpath::Status post_one(const offpath::control::Command& command);
    std::vector<offpath::memory::PageRange> share_pages(const offpath_request& request);
    void tell_of_pages(std::span<const offpath::memory::PageRange> pages);
    void sleep_while_pending(offpath_request& request, std::uint64_t limit_ns);
    offpath::Status take(offpath_request& request);
    bool proxy_gone();
    bool lost_locked();
    void declare_lost();
    pid_t daemon_that_may_write() const;

    offpath::memory::PageSharing* pages_ = nullptr;  // null: the device cannot map them
    const bool threads_;
    std::atomic<bool> shared_{false};
    const std::uint64_t spin_ns_;
    std::mutex mutex_;
    std::mutex socket_mutex_;
    std::atomic<bool> lost_{false};
    std::atomic<std::uint64_t> checked_ns_{0};
    std::atomic<std::uint32_t> idle_tests_{0};
};
