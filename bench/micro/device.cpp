#include "device.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace micro {

namespace {

std::string session_directory;

int allgather_of_one(void*, const void* mine, std::size_t bytes, void* all) {
    std::memcpy(all, mine, bytes);
    return 0;
}

// Binds this process to the first core that it may use, and the daemon to the last.
void split_cores() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
    int first = -1, last = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        if (first < 0) first = cpu;
        last = cpu;
    }
    setenv("OFFPATH_DEVICE_CPUS", std::to_string(last).c_str(), 1);
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(first, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}

}  // namespace

void check(offpath_status_t status, const char* call) {
    if (status != OFFPATH_OK)
        throw std::runtime_error(std::string(call) + ": " + offpath_status_string(status));
}

void prepare(const std::string& program) {
    std::array<char, 64> path{"/tmp/offpath-micro.XXXXXX"};
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a directory in /tmp");
    session_directory = path.data();
    const std::filesystem::path daemon = std::filesystem::canonical(program).parent_path() / "offpathd";
    setenv("OFFPATH_DIR", session_directory.c_str(), 1);
    setenv("OFFPATH_AUTOSTART", "1", 1);
    setenv("OFFPATH_DAEMON", daemon.c_str(), 1);
    split_cores();
}

void clean_up() {
    std::filesystem::remove_all(session_directory);
}

Device::Device(const std::string& back_end) {
    setenv("OFFPATH_BACK_END", back_end.c_str(), 1);
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = OFFPATH_THREADS_SINGLE;
    params.allgather = allgather_of_one;
    params.size = 1;
    check(offpath_init(&params, &context_), "offpath_init");
    check(offpath_team_world(context_, &team_), "offpath_team_world");
}

Device::~Device() {
    offpath_finalize(context_);
}

}  // namespace micro
