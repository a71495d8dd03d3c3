#include "control/life_signs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace offpath::control {
namespace {

// Returns the beginning of a file's first line, or an empty string if the file cannot be read.
std::string first_line(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    char text[512];
    const ssize_t got = read(fd, text, sizeof text);
    close(fd);
    return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

ThreadState thread_state(pid_t process, pid_t thread) {
    ThreadState state;
    if (process <= 0 || thread <= 0) return state;
    const std::string folder = fmt::format("/proc/{}/task/{}/", process, thread);
    const std::string stat = first_line(folder + "stat"), times = first_line(folder + "schedstat");
    // The format is "PID (NAME) LETTER ...", and the name may contain any character.
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat.size() || times.empty()) return state;
    state.known = true;
    state.letter = stat[name_end + 2];
    state.run_ns = std::strtoull(times.c_str(), nullptr, 10);
    return state;
}

LifeSigns::Next LifeSigns::look(std::uint64_t now_ns, bool answered, const ThreadState& proxy) {
    const std::uint64_t passed_ns = now_ns - looked_ns_;
    looked_ns_ = now_ns;
    if (!open_ || answered) {
        if (open_) heard_ns_ = now_ns;
        open_ = false;
        if (now_ns - heard_ns_ < interval_ns_) return Next::wait;
        open_ = true;
        silent_ns_ = 0;
        run_ns_ = proxy.run_ns;
        return Next::ask;
    }
    silent_ns_ += could_have_ns(std::min(passed_ns, limit_ns_ / 4), proxy);
    run_ns_ = proxy.run_ns;
    return silent_ns_ >= limit_ns_ ? Next::lost : Next::wait;
}

std::uint64_t LifeSigns::could_have_ns(std::uint64_t passed_ns, const ThreadState& proxy) const {
    if (!proxy.known) return passed_ns;
    switch (proxy.letter) {
        case 't':  // a debugger has stopped it
            return 0;
        case 'R':
            return std::min(passed_ns, proxy.run_ns - std::min(run_ns_, proxy.run_ns));
        default:
            return passed_ns;
    }
}

}  // namespace offpath::control
