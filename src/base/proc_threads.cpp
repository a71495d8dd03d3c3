#include "base/proc_threads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

namespace offpath {

std::string thread_file(pid_t process, pid_t thread, const char* name) {
    const int fd =
        open(fmt::format("/proc/{}/task/{}/{}", process, thread, name).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    char text[512];
    const ssize_t got = read(fd, text, sizeof text);
    close(fd);
    return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

char thread_letter(pid_t process, pid_t thread) {
    const std::string stat = thread_file(process, thread, "stat");
    // The format is "PID (NAME) LETTER ...", and the name may contain any character.
    const std::size_t name_end = stat.rfind(')');
    return name_end != std::string::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : '\0';
}

bool is_dying(pid_t process) {
    const std::string stat = thread_file(process, process, "stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) return false;
    // proc(5): the third field is the state, the ninth has flags, and the 31st the pending signals below 32.
    constexpr int state_field = 3, flags_field = 9, pending_field = 31;
    constexpr unsigned long exiting = 0x4, killed = 1UL << (SIGKILL - 1);
    std::istringstream fields(stat.substr(name_end + 1));
    std::string field;
    for (int number = state_field; fields >> field; ++number) {
        if (number == state_field && (field == "Z" || field == "X")) return true;
        if (number == flags_field && (std::stoul(field) & exiting) != 0) return true;
        if (number == pending_field) return (std::stoul(field) & killed) != 0;
    }
    return false;
}

}  // namespace offpath
