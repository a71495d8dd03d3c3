// Sends a signal to the only daemon of this run; its pid file is beside its socket.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace check {

// A signal may stop a process only when it runs the next time.
inline void wait_stopped(pid_t pid) {
    for (int i = 0; i < 2000; ++i) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
        const std::string stat{std::istreambuf_iterator<char>(file), {}};
        const std::size_t name_ends = stat.rfind(')');
        if (name_ends == std::string::npos || stat.compare(name_ends, 3, ") T") == 0) return;
        usleep(1000);
    }
}

inline void kill_daemon(int signal = SIGKILL) {
    const char* directory = std::getenv("OFFPATH_DIR");
    for (const auto& file : std::filesystem::directory_iterator(directory != nullptr ? directory : ".")) {
        if (file.path().extension() != ".pid") continue;
        pid_t pid = 0;
        std::ifstream(file.path()) >> pid;
        if (pid <= 1) continue;
        kill(pid, signal);
        if (signal == SIGSTOP) wait_stopped(pid);
    }
}

}  // namespace check
