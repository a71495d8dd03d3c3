// Sends a signal to the only daemon of this run; its pid file is beside its socket.
#pragma once

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace check {

inline void kill_daemon(int signal = SIGKILL) {
    const char* directory = std::getenv("OFFPATH_DIR");
    for (const auto& file : std::filesystem::directory_iterator(directory != nullptr ? directory : ".")) {
        if (file.path().extension() != ".pid") continue;
        pid_t pid = 0;
        std::ifstream(file.path()) >> pid;
        if (pid > 1) kill(pid, signal);
    }
}

}  // namespace check
