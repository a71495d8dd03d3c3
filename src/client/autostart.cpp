// Starts a daemon from inside a host rank. The daemon inherits only the rank's user and environment. It gets
// no descriptors (the launcher waits until its pipes are closed), no controlling session and no CPU binding.
#include "base/environment.h"
#include "base/thread_caches.h"
#include "client/attach.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::client {
namespace {

constexpr int ready_descriptor = 3;

// Runs in the child between fork and exec, so it makes system calls only.
[[noreturn]] void become_daemon(char* const* arguments, char* const* variables, int log, int ready) {
    setsid();
    if (_Fork() != 0) _exit(0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = open("/dev/null", O_RDWR);
    // The ready pipe may have a low number, so it moves up before the other descriptors are set. Not far,
    // since `ulimit -n` may be low.
    ready = fcntl(ready, F_DUPFD, ready_descriptor + 1);
    log = fcntl(log >= 0 ? log : null, F_DUPFD, ready_descriptor + 1);
    dup2(null, 0);
    dup2(null, 1);
    dup2(log, 2);
    dup2(ready, ready_descriptor);
    syscall(SYS_close_range, ready_descriptor + 1, ~0U, 0);
    execve(arguments[0], arguments, variables);
    dprintf(2, "offpath: cannot run %s: %s [OFP-0106]\n", arguments[0], std::strerror(errno));
    _exit(127);
}

bool has_rdma_card() {
    std::error_code unknown;
    const std::filesystem::directory_iterator cards("/sys/class/infiniband", unknown);
    return !unknown && cards != std::filesystem::directory_iterator();
}

// This process's environment, without the preloaded libraries. When UCX is loaded it replaces the functions
// that map memory, and waits 50 ms for each of the eight. Only memory that is registered with an RDMA card
// needs that.
std::vector<std::string> daemon_variables() {
    constexpr std::string_view hooks = "UCX_MEM_MMAP_HOOK_MODE=";
    const std::string tunables = std::string(thread_caches::variable) + "=";
    std::vector<std::string> variables;
    bool hooks_set = false, tunables_set = false;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view variable = *entry;
        hooks_set = hooks_set || variable.starts_with(hooks);
        tunables_set = tunables_set || variable.starts_with(tunables);
        if (!variable.starts_with("LD_PRELOAD=")) variables.emplace_back(variable);
    }
    if (!hooks_set && !has_rdma_card()) variables.push_back(fmt::format("{}none", hooks));
    if (!tunables_set) variables.push_back(tunables + thread_caches::off);
    return variables;
}

// As execve() takes them. Borrows the words.
std::vector<char*> as_vector(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Returns OFFPATH_DAEMON, or bin/offpathd next to the folder of the library that contains this code.
std::string daemon_program() {
    Dl_info here{};
    std::string beside;
    if (dladdr(reinterpret_cast<const void*>(&start_daemon), &here) != 0 && here.dli_fname != nullptr) {
        // The library may be found by a link, such as one in the folder that the system searches.
        std::error_code unknown;
        const auto library = std::filesystem::canonical(here.dli_fname, unknown);
        if (!unknown) beside = (library.parent_path() / "../bin/offpathd").string();
    }
    return environment::text("OFFPATH_DAEMON", beside);
}

}  // namespace

Status may_start_daemon(const std::string& directory, std::string& problem) {
    const std::string program = daemon_program();
    if (program.empty() || access(program.c_str(), X_OK) != 0) {
        problem = fmt::format("OFFPATH_AUTOSTART is on, but OFFPATH_DAEMON='{}' names no program", program);
        return Status::unavailable;
    }
    return control::own_directory(directory, problem);
}

Status start_daemon(const std::string& directory, std::string& problem) {
    if (Status status = may_start_daemon(directory, problem); status != Status::ok) return status;
    const std::string program = daemon_program();
    const std::string log_path = fmt::format("{}/{}.log", directory, control::host_name());
    std::vector<std::string> words{program,
                                   "--dir",
                                   directory,
                                   "--idle-exit",
                                   environment::text("OFFPATH_IDLE_EXIT", "2"),
                                   "--ready-fd",
                                   std::to_string(ready_descriptor),
                                   "--log-level",
                                   environment::text("OFFPATH_DAEMON_LOG_LEVEL", "warn"),
                                   "--cpus",
                                   environment::text("OFFPATH_DEVICE_CPUS", "all")};
    const auto pass = [&](const char* variable, const char* option) {
        const std::string value = environment::text(variable, "");
        if (value.empty()) return;
        words.emplace_back(option);
        words.push_back(value);
    };
    pass("OFFPATH_PROXIES", "--proxies");
    pass("OFFPATH_SPIN_US", "--spin-us");
    std::vector<std::string> variables = daemon_variables();
    const std::vector<char*> argument_vector = as_vector(words), variable_vector = as_vector(variables);

    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) {
        problem = fmt::format("pipe: {}", std::strerror(errno));
        return Status::system;
    }
    FileDescriptor read_end(ready[0]), write_end(ready[1]);
    FileDescriptor log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    // Without the handlers of fork(): ours would copy all memory that the device maps (child_copies.h).
    const pid_t child = _Fork();
    if (child == 0) become_daemon(argument_vector.data(), variable_vector.data(), log.get(), write_end.get());
    if (child < 0) {
        problem = fmt::format("fork: {}", std::strerror(errno));
        return Status::system;
    }
    write_end.reset();
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    pollfd entry{read_end.get(), POLLIN, 0};
    char byte = 0;
    if (poll(&entry, 1, 8000) > 0 && read(read_end.get(), &byte, 1) == 1) return Status::ok;
    // Another job may have started a daemon at the same time. That daemon serves us as well; wait until it is
    // ready.
    for (int i = 0; i < 150; ++i) {
        FileDescriptor probe;
        std::string ignored;
        const std::string path = control::socket_path(directory);
        if (control::connect_to(path, probe, ignored) == Status::ok) return Status::ok;
        if (access(control::pid_path(directory).c_str(), F_OK) != 0) break;
        poll(nullptr, 0, 20);
    }
    problem = fmt::format("{} did not get ready; its words are in {}", program, log_path);
    return Status::unavailable;
}

}  // namespace offpath::client
