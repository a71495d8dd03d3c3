#include "header_watcher.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "communicator_state.h"
#include "parcel.h"
#include "runtime/runtime.h"

namespace offpath::mpi::p2p {

struct HeaderWatch {
    const char* at = nullptr;
    std::size_t room = 0;
    std::uint64_t communicator = 0;
    std::uint64_t before = 0;  // the first bytes in the buffer when the receive was posted
    std::uint64_t number = 0;  // the first bytes of the header, once the watcher has asked for its message
    std::size_t index = 0;     // its place among the pending ones
    Asked asked;
    bool is_asked = false;
};

namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t shortest_nap_ns = 50'000, longest_nap_ns = 1'000'000;
constexpr std::uint64_t looks_share = 100;  // looks take at most 1/100 of the time
constexpr int naps_before_sleep = 32;       // while no receive is pending
constexpr std::size_t looks_at_a_time = 32;

struct Watcher {
    std::mutex mutex;  // guards the following
    std::condition_variable bell;
    std::vector<HeaderWatch*> pending;
    std::unordered_set<std::uint64_t> asked;  // numbers of headers whose receives are not complete
    std::vector<std::unique_ptr<HeaderWatch>> all;
    std::vector<HeaderWatch*> free;
    bool sleeps = false, ends = false, shares = false;
    bool cannot_start = false;
    std::thread thread;
};

Watcher& the_watcher() {
    // Never destroyed: a program may end without MPI_Finalize while the thread still polls.
    static Watcher& watcher = *new Watcher;
    return watcher;
}

// The host's MPI may be writing there meanwhile.
template <typename Bytes>
void look(const char* at, Bytes& bytes) {
    const volatile char* from = at;
    auto* to = reinterpret_cast<char*>(&bytes);
    for (std::size_t i = 0; i < sizeof bytes; ++i)
        to[i] = from[i];
    std::atomic_thread_fence(std::memory_order_acquire);
}

std::uint64_t first_bytes(const char* at) {
    std::uint64_t number = 0;
    look(at, number);
    return number;
}

// Whether its message was asked for now. Needs the mutex.
bool try_to_ask(Watcher& watcher, HeaderWatch& watch) {
    if (first_bytes(watch.at) == watch.before) return false;
    HeaderBytes bytes;
    look(watch.at, bytes);
    if (!is_header(bytes)) return false;
    const Header header = decode(bytes.data());
    if (header.kind != Header::by_device || header.key.high != watch.communicator ||
        header.destination != static_cast<std::uint32_t>(runtime().rank))
        return false;
    std::memcpy(&watch.number, bytes.data(), sizeof watch.number);
    // Two receives into the same memory see the same header.
    if (!watcher.asked.insert(watch.number).second) return false;
    const std::size_t room = header.bytes <= watch.room ? static_cast<std::size_t>(header.bytes) : 0;
    watch.asked = {header, nullptr};
    if (offpath_message_recv(world_team(), room > 0 ? const_cast<char*>(watch.at) : nullptr, room,
                             header.source, header.key, &watch.asked.keyed_message) != OFFPATH_OK) {
        // The receive's owner will meet the same error, and report it.
        watch.before = watch.number;
        watcher.asked.erase(watch.number);
        return false;
    }
    watch.is_asked = true;
    return true;
}

void remove(std::vector<HeaderWatch*>& pending, HeaderWatch& watch) {
    pending.back()->index = watch.index;
    pending[watch.index] = pending.back();
    pending.pop_back();
}

// Whether one of the pending receives had its message asked for.
bool look_at_all(Watcher& watcher, std::unique_lock<std::mutex>& guard) {
    bool found = false;
    std::size_t looked = 0;
    for (std::size_t i = 0; i < watcher.pending.size() && !watcher.ends;) {
        if (++looked % looks_at_a_time == 0) {
            guard.unlock();
            guard.lock();
            if (i >= watcher.pending.size()) break;
        }
        HeaderWatch& watch = *watcher.pending[i];
        if (!try_to_ask(watcher, watch)) {
            ++i;
            continue;
        }
        found = true;
        remove(watcher.pending, watch);
    }
    return found;
}

void run() {
    pthread_setname_np(pthread_self(), "offpath-watch");
    Watcher& watcher = the_watcher();
    std::unique_lock guard(watcher.mutex);
    std::uint64_t nap_ns = shortest_nap_ns;
    int idle_naps = 0;
    while (!watcher.ends) {
        if (watcher.pending.empty() && ++idle_naps > naps_before_sleep) {
            watcher.sleeps = true;
            watcher.bell.wait(guard, [&] { return !watcher.sleeps || watcher.ends; });
            nap_ns = shortest_nap_ns;
        }
        if (!watcher.pending.empty()) idle_naps = 0;
        const std::uint64_t began_ns = now_ns();
        const bool found = look_at_all(watcher, guard);
        const std::uint64_t looking_ns = now_ns() - began_ns;
        watcher.bell.wait_for(guard, nanoseconds(std::max(nap_ns, looks_share * looking_ns)),
                              [&] { return watcher.ends; });
        nap_ns = found ? shortest_nap_ns : std::min(2 * nap_ns, longest_nap_ns);
    }
}

// Needs the mutex.
bool is_started(Watcher& watcher) {
    if (watcher.thread.joinable()) return true;
    if (watcher.cannot_start) return false;
    // Signals of the program are for its own threads.
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    try {
        watcher.thread = std::thread(run);
    } catch (const std::system_error& error) {
        watcher.cannot_start = true;
        warn(Code::resources,
             std::string("no thread can be started to take in messages during calls of the host's MPI: ") +
                 error.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return watcher.thread.joinable();
}

// Needs the mutex; called by the thread that owns the context. While nothing is pending, the watcher does not
// use the context.
void share_context(Watcher& watcher, bool on) {
    if (watcher.shares == on) return;
    watcher.shares = on;
    offpath_context_share(runtime().context, on ? 1 : 0);
}

}  // namespace

void watch(Parcel& parcel, char* at, std::size_t room) {
    Watcher& watcher = the_watcher();
    const std::lock_guard guard(watcher.mutex);
    if (!is_started(watcher)) return;
    if (watcher.free.empty()) {
        watcher.all.push_back(std::make_unique<HeaderWatch>());
        watcher.free.push_back(watcher.all.back().get());
    }
    HeaderWatch& watch = *watcher.free.back();
    watcher.free.pop_back();
    watch = {};
    watch.at = at;
    watch.room = room;
    watch.communicator = parcel.pairs->id;
    watch.before = first_bytes(at);
    watch.index = watcher.pending.size();
    parcel.watch = &watch;
    share_context(watcher, true);
    watcher.pending.push_back(&watch);
    if (watcher.sleeps) {
        watcher.sleeps = false;
        watcher.bell.notify_one();
    }
}

bool unwatch(Parcel& parcel, Asked* asked) {
    if (parcel.watch == nullptr) return false;
    Watcher& watcher = the_watcher();
    const std::lock_guard guard(watcher.mutex);
    HeaderWatch& watch = *parcel.watch;
    parcel.watch = nullptr;
    if (watch.is_asked) {
        watcher.asked.erase(watch.number);
        *asked = watch.asked;
    } else {
        remove(watcher.pending, watch);
    }
    watcher.free.push_back(&watch);
    if (watcher.pending.empty()) share_context(watcher, false);
    return watch.is_asked;
}

void close_watcher() {
    Watcher& watcher = the_watcher();
    if (!watcher.thread.joinable()) return;
    {
        const std::lock_guard guard(watcher.mutex);
        watcher.ends = true;
        watcher.bell.notify_one();
    }
    watcher.thread.join();
}

}  // namespace offpath::mpi::p2p
