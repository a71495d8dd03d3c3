// LifeSigns: how a client tells a proxy of its own system that is stopped or hangs from one that sleeps or is
// slow. While the client waits it asks now and then, and the proxy answers as soon as its loop goes round. A
// proxy that owes an answer is lost when it could have answered for the whole limit: time in which it is
// runnable counts only as far as it has the CPU, and time in which a debugger holds it does not count. Time
// between two looks, in which the client may compute or be stopped itself, counts up to a quarter of the
// limit.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace offpath::control {

// A thread at one moment, as /proc tells.
struct ThreadState {
    bool known = false;
    char letter = '?';         // as in /proc/PID/stat
    std::uint64_t run_ns = 0;  // on a CPU, ever
};
// Of a thread of a process that can be seen here.
ThreadState thread_state(pid_t process, pid_t thread);

class LifeSigns {
  public:
    enum class Next : std::uint8_t { wait, ask, lost };
    explicit LifeSigns(std::uint64_t limit_ns) : limit_ns_(limit_ns), interval_ns_(limit_ns / 8) {}

    // Whether now is the time to look; cheap.
    bool due(std::uint64_t now_ns) const { return now_ns - looked_ns_ >= interval_ns_ / 8; }
    // `answered`: the last question was. ask: put the next one.
    Next look(std::uint64_t now_ns, bool answered, const ThreadState& proxy);
    // For which the proxy could have answered and did not.
    std::uint64_t silent_ns() const { return silent_ns_; }

  private:
    std::uint64_t could_have_ns(std::uint64_t passed_ns, const ThreadState& proxy) const;

    const std::uint64_t limit_ns_, interval_ns_;
    std::uint64_t looked_ns_ = 0, heard_ns_ = 0;
    std::uint64_t silent_ns_ = 0;
    std::uint64_t run_ns_ = 0;  // of the proxy, at the last look
    bool open_ = false;         // a question waits for its answer
};

}  // namespace offpath::control
