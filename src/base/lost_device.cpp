#include "base/lost_device.h"

#include "base/proc_threads.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <sys/syscall.h>

namespace offpath::lost_device {
namespace {

std::atomic<pid_t> lost_daemon{nobody};

std::mutex writes_mutex;  // guards what follows
const std::atomic<std::uint32_t>* recorded_writing = nullptr;
pid_t writing_daemon = 0, writing_thread = 0;

// Whether a signal has stopped the thread after the system call that writes. A thread is stopped before it
// returns to its program, so the call is over, and what it has written is there. Where it is stopped outside
// of a call, or this process may not know, the answer is no.
bool is_stopped_behind_write(pid_t process, pid_t thread) {
    if (process <= 0 || thread <= 0) return false;
    const auto is_stopped = [&] { return thread_letter(process, thread) == 'T'; };
    return is_stopped() &&
           thread_file(process, thread, "syscall").starts_with(fmt::format("{} ", SYS_process_vm_writev)) &&
           is_stopped();
}

// Its first thread may end before others, which are still in a system call. Its parent need not have
// collected it.
bool has_ended(pid_t process) {
    if (kill(process, 0) != 0 && errno == ESRCH) return true;
    std::error_code error;
    const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", process), error);
    if (error) return kill(process, 0) != 0 && errno == ESRCH;
    for (const auto& thread : threads) {
        const char letter = thread_letter(process, std::atoi(thread.path().filename().c_str()));
        if (letter != '\0' && letter != 'Z' && letter != 'X') return false;
    }
    return true;
}

}  // namespace

void record(pid_t daemon) {
    lost_daemon.store(daemon, std::memory_order_release);
}

void record_writes(const std::atomic<std::uint32_t>* writing, pid_t daemon, pid_t thread) {
    const std::lock_guard lock(writes_mutex);
    recorded_writing = writing;
    writing_daemon = daemon;
    writing_thread = thread;
}

void forget_writes(const std::atomic<std::uint32_t>* writing) {
    const std::lock_guard lock(writes_mutex);
    if (recorded_writing == writing) recorded_writing = nullptr;
}

bool may_still_call() {
    if (!may_still_write()) return false;
    const std::lock_guard lock(writes_mutex);
    if (recorded_writing == nullptr) return true;
    const std::uint32_t marks = recorded_writing->load(std::memory_order_seq_cst);
    // With two marks, another thread of the daemon writes, too.
    return marks > 1 || (marks == 1 && !is_stopped_behind_write(writing_daemon, writing_thread));
}

bool may_still_write() {
    const pid_t daemon = lost_daemon.load(std::memory_order_acquire);
    return daemon == unknown || (daemon != nobody && !has_ended(daemon));
}

}  // namespace offpath::lost_device
