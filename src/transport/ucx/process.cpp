#include "transport/ucx/process.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

namespace offpath::transport::ucx {
namespace {

std::uint64_t inode(const char* path) {
    struct stat info {};
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

// Returns field 22 of the main thread's stat, or 0 if there is no such process. The name in front of it, in
// parentheses, may contain anything. /proc/PID/stat is not read, because qemu's user mode invents that file
// for the process itself. Other processes would then read another time.
std::uint64_t start_time(std::uint64_t pid) {
    const std::string number = std::to_string(pid);
    std::ifstream file("/proc/" + number + "/task/" + number + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream fields(line.substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field)
        fields >> skipped;
    std::uint64_t start = 0;
    fields >> start;
    return start;
}

std::uint64_t boot() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (char letter : id)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
    return hash;
}

}  // namespace

Process this_process() {
    static const std::uint64_t random = [] {
        std::random_device device;
        return std::uint64_t{device()} << 32 | device();
    }();
    Process process;
    process.random = random;
    process.pid = static_cast<std::uint64_t>(getpid());
    process.start = start_time(process.pid);
    process.boot = boot();
    process.pid_space = inode("/proc/self/ns/pid");
    process.ipc_space = inode("/proc/self/ns/ipc");
    return process;
}

ProcessWatch::ProcessWatch() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

ProcessWatch::~ProcessWatch() {
    if (epoll_ >= 0) close(epoll_);
}

ProcessWatch::Seen ProcessWatch::watch(const Process& process, void* token, int& pidfd) {
    if (epoll_ < 0 || process.boot != self_.boot || process.pid_space != self_.pid_space ||
        process.ipc_space != self_.ipc_space || process.start == 0)
        return Seen::not_visible;
    const long opened = syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0);
    if (opened < 0) return errno == ESRCH ? Seen::dead : Seen::not_visible;
    const int fd = static_cast<int>(opened);
    // Read the start time after the pidfd was opened, so that both are of the same process. 0: /proc does not
    // tell.
    const std::uint64_t start = start_time(process.pid);
    if (start != process.start) {
        close(fd);
        return start == 0 ? Seen::not_visible : Seen::dead;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = token;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return Seen::not_visible;
    }
    ++watched_;
    pidfd = fd;
    return Seen::alive;
}

void ProcessWatch::forget(int pidfd) {
    if (pidfd < 0) return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, pidfd, nullptr);
    close(pidfd);
    --watched_;
}

void* ProcessWatch::dead() const {
    epoll_event event{};
    return watched_ > 0 && epoll_wait(epoll_, &event, 1, 0) == 1 ? event.data.ptr : nullptr;
}

}  // namespace offpath::transport::ucx
