// Sends a signal to the only daemon of this run; its pid file is beside its socket.
// KILL_AT=RANK:CALL:US: the daemon of a rank is killed so many microseconds after a call of kill_if_due().
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

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

// Of several_daemons.sh: the name of its directory.
inline int number_of_daemon() {
    const char* directory = std::getenv("OFFPATH_DIR");
    return directory == nullptr ? 0 : std::atoi(std::filesystem::path(directory).filename().c_str());
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

// Call it on all ranks before each call under test.
inline void kill_if_due(int rank) {
    static int calls = 0;
    const char* const at = std::getenv("KILL_AT");
    int victim = 0, call = 0;
    unsigned delay_us = 0;
    if (at == nullptr || std::sscanf(at, "%d:%d:%u", &victim, &call, &delay_us) != 3) return;
    if (calls++ != call || rank != victim) return;
    std::thread([delay_us] {
        usleep(delay_us);
        kill_daemon();
    }).detach();
}

}  // namespace check
