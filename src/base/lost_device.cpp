#include "base/lost_device.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace offpath::lost_device {
namespace {

std::atomic<pid_t> lost_daemon{nobody};

// Whether a thread has ended. Its process need not have been collected by its parent.
bool has_ended(const std::filesystem::path& thread) {
    std::ifstream file(thread / "stat");
    std::string line;
    if (!std::getline(file, line)) return true;
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
    const char state = line[name_end + 2];
    return state == 'Z' || state == 'X';
}

// The first thread may end before others, which are still in a system call.
bool has_ended(pid_t process) {
    if (kill(process, 0) != 0 && errno == ESRCH) return true;
    std::error_code error;
    const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", process), error);
    if (error) return kill(process, 0) != 0 && errno == ESRCH;
    for (const auto& thread : threads)
        if (!has_ended(thread.path())) return false;
    return true;
}

}  // namespace

void record(pid_t daemon) {
    lost_daemon.store(daemon, std::memory_order_release);
}

bool may_still_write() {
    const pid_t daemon = lost_daemon.load(std::memory_order_acquire);
    return daemon == unknown || (daemon != nobody && !has_ended(daemon));
}

}  // namespace offpath::lost_device
