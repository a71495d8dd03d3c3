#include "autostart.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace offpath::mpi {
namespace {

constexpr int ready_within_ms = 10000;
constexpr int ready_fd_of_daemon = 3;
constexpr const char* idle_exit_seconds = "10";

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

bool answers(const std::string& socket_path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return connected;
}

// OFFPATH_DAEMON, else ../bin/offpathd beside this library's folder.
std::string daemon_path() {
    const std::string asked = environment::text("OFFPATH_DAEMON", "");
    if (!asked.empty()) return asked;
    Dl_info here{};
    if (dladdr(reinterpret_cast<const void*>(&ensure_daemon), &here) == 0 || here.dli_fname == nullptr)
        return "offpathd";
    const std::string library = here.dli_fname;
    return library.substr(0, library.rfind('/') + 1) + "../bin/offpathd";
}

std::vector<std::string> daemon_arguments(const std::string& program, const std::string& directory) {
    std::vector<std::string> arguments = {program,
                                          "--dir",
                                          directory,
                                          "--ready-fd",
                                          std::to_string(ready_fd_of_daemon),
                                          "--idle-exit",
                                          idle_exit_seconds,
                                          "--log-file",
                                          fmt::format("{}/{}.log", directory, host_name())};
    constexpr std::array<std::array<const char*, 2>, 3> passed = {{
        {"OFFPATH_DEVICE_CPUS", "--cpus"},
        {"OFFPATH_PROXIES", "--proxies"},
        {"OFFPATH_SPIN_US", "--spin-us"},
    }};
    for (const auto& [variable, option] : passed) {
        const std::string value = environment::text(variable, "");
        if (value.empty()) continue;
        arguments.emplace_back(option);
        arguments.push_back(value);
    }
    return arguments;
}

// The environment without LD_PRELOAD: the daemon is no MPI process.
std::vector<char*> daemon_environment() {
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) variables.push_back(*variable);
    }
    variables.push_back(nullptr);
    return variables;
}

// In the second child, where only async-signal-safe calls are allowed. Never returns.
[[noreturn]] void become_daemon(char* const* arguments, char* const* variables, int ready_fd) {
    // The rank may be bound to one core, which is the host's; without --cpus the daemon may use any.
    cpu_set_t any;
    CPU_ZERO(&any);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        CPU_SET(cpu, &any);
    sched_setaffinity(0, sizeof any, &any);

    const int null = open("/dev/null", O_RDWR);
    dup2(ready_fd, ready_fd_of_daemon);
    for (int fd = 0; fd <= 2; ++fd)
        dup2(null, fd);
    // Whoever reads the rank's output waits for every holder of the pipe: hold nothing but the ready
    // descriptor.
    syscall(SYS_close_range, ready_fd_of_daemon + 1, ~0U, 0U);
    execvpe(arguments[0], arguments, variables);
    _exit(127);
}

void start_detached(char* const* arguments, char* const* variables, int ready_fd) {
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) become_daemon(arguments, variables, ready_fd);
        _exit(0);
    }
    if (child > 0) {
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
}

// True when the daemon wrote its byte; false when it ended or took too long.
bool await_ready(int fd) {
    pollfd waited{fd, POLLIN, 0};
    int ready = 0;
    do {
        ready = ::poll(&waited, 1, ready_within_ms);
    } while (ready < 0 && errno == EINTR);
    char byte = 0;
    return ready == 1 && read(fd, &byte, 1) == 1 && byte == '1';
}

}  // namespace

std::string session_directory() {
    return environment::text("OFFPATH_DIR", fmt::format("/tmp/offpath-{}", getuid()));
}

bool ensure_daemon(std::string& problem) {
    const std::string directory = session_directory();
    const std::string socket_path = fmt::format("{}/{}.sock", directory, host_name());
    if (answers(socket_path)) return true;

    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        problem = fmt::format("the session directory {} cannot be made: {}", directory, std::strerror(errno));
        return false;
    }
    std::array<int, 2> ready{};
    if (pipe2(ready.data(), O_CLOEXEC) != 0) {
        problem = fmt::format("no pipe for starting the daemon: {}", std::strerror(errno));
        return false;
    }
    const std::string program = daemon_path();
    std::vector<std::string> arguments = daemon_arguments(program, directory);
    std::vector<char*> argument_pointers;
    for (std::string& argument : arguments)
        argument_pointers.push_back(argument.data());
    argument_pointers.push_back(nullptr);
    const std::vector<char*> variables = daemon_environment();

    start_detached(argument_pointers.data(), variables.data(), ready[1]);
    close(ready[1]);
    const bool started = await_ready(ready[0]);
    close(ready[0]);
    // Another job may have been faster; then ours ended, and theirs serves us too.
    if (started || answers(socket_path)) return true;
    problem = fmt::format("{} did not start (see {}/{}.log; OFFPATH_DAEMON names another program)", program,
                          directory, host_name());
    return false;
}

}  // namespace offpath::mpi
