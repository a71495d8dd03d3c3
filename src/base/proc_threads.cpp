#include "base/proc_threads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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

}  // namespace offpath
