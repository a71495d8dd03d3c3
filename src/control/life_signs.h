// LifeSigns: lets a client tell a stopped or hanging proxy of its own system from a sleeping or slow one.
// While the client waits it asks periodically, and the proxy answers as soon as its loop runs. A proxy that
// owes an answer is lost once it could have answered for the whole limit. Time in which the proxy is runnable
// counts only while it has the CPU. Time in which a debugger holds it does not count. The time between two
// looks, in which the client may compute or be stopped itself, counts up to a quarter of the limit.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace offpath::control {

// The state of a thread at one moment, from /proc.
struct ThreadState {
    bool known = false;
    char letter = '?';         // as in /proc/PID/stat
    std::uint64_t run_ns = 0;  // total time on a CPU
};
// Reads the state of a thread of a process that is visible here.
ThreadState thread_state(pid_t process, pid_t thread);

class LifeSigns {
  public:
    enum class Next : std::uint8_t { wait, ask, lost };
    explicit LifeSigns(std::uint64_t limit_ns) : limit_ns_(limit_ns), interval_ns_(limit_ns / 8) {}

    // Whether it is time for the next look(); cheap.
    bool due(std::uint64_t now_ns) const { return now_ns - looked_ns_ >= interval_ns_ / 8; }
    // `answered`: the last question was answered. ask: put the next question.
    Next look(std::uint64_t now_ns, bool answered, const ThreadState& proxy);
    // How long the proxy could have answered and did not.
    std::uint64_t silent_ns() const { return silent_ns_; }

  private:
    std::uint64_t could_have_ns(std::uint64_t passed_ns, const ThreadState& proxy) const;

    const std::uint64_t limit_ns_, interval_ns_;
    std::uint64_t looked_ns_ = 0, heard_ns_ = 0;
    std::uint64_t silent_ns_ = 0;
    std::uint64_t run_ns_ = 0;  // of the proxy, at the last look
    bool open_ = false;         // a question is unanswered
};

}  // namespace offpath::control
