#include "kernel_host/host_process.h"

#include "base/file_descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace offpath::kernel_host {
namespace {

void use_cpus(const char* list) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    while (*list != '\0') {
        char* end = nullptr;
        const unsigned long cpu = std::strtoul(list, &end, 10);
        if (end == list) return;
        if (cpu < CPU_SETSIZE) CPU_SET(cpu, &cpus);
        list = *end == ',' ? end + 1 : end;
    }
    if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof cpus, &cpus);
}

// Changes to another user permanently and gives up all capabilities. Empty: the user stays the same.
bool become(const char* user) {
    if (*user == '\0') return true;
    char* end = nullptr;
    const auto uid = static_cast<uid_t>(std::strtoul(user, &end, 10));
    if (uid == 0 || *end != ':') return false;
    const auto gid = static_cast<gid_t>(std::strtoul(end + 1, nullptr, 10));
    if (setgroups(0, nullptr) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return false;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // The header names version 3 and this thread. The data name no capabilities.
    const std::uint32_t header[2] = {0x20080522, 0}, none[6] = {};
    return syscall(SYS_capset, header, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// The file's name has the process's number and its user's.
void remove_openmp_mark(pid_t pid) {
    const std::string name = fmt::format("__KMP_REGISTERED_LIB_{}_", pid);
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/dev/shm", error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code ignored;
        if (entry->path().filename().native().starts_with(name))
            std::filesystem::remove(entry->path(), ignored);
    }
}

}  // namespace

// The number stays taken until the mark is gone, so that no later process loses its own.
pid_t wait_for_host(pid_t pid, int options, int& status) {
    siginfo_t facts{};
    while (waitid(P_PID, static_cast<id_t>(pid), &facts, WEXITED | WNOWAIT | options) != 0)
        if (errno != EINTR) return -1;
    if (facts.si_pid != pid) return 0;
    remove_openmp_mark(pid);
    return waitpid(pid, &status, WNOHANG);
}

Status spawn_host(const HostConfig& config, std::vector<std::string> arguments,
                  std::span<const int> descriptors, pid_t& pid, std::string& problem) {
    // The source descriptors must differ from the targets: dup2 of a descriptor onto itself would leave it to
    // be closed by exec.
    std::vector<FileDescriptor> high;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    bool fine = true;
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
        high.emplace_back(
            fcntl(descriptors[i], F_DUPFD_CLOEXEC, first_host_fd + static_cast<int>(descriptors.size())));
        fine = fine && static_cast<bool>(high.back());
        posix_spawn_file_actions_adddup2(&files, high.back().get(), first_host_fd + static_cast<int>(i));
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::string cpus;
    for (const int cpu : config.cpus)
        cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
    // An emulated daemon cannot start programs of its own architecture by itself.
    const char* const runner = std::getenv("OFFPATH_HOST_RUNNER");
    std::vector<std::string> words;
    if (runner != nullptr) words.emplace_back(runner);
    words.insert(words.end(), {config.program, std::to_string(getpid()), cpus, config.user});
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> vector;
    for (std::string& word : words)
        vector.push_back(word.data());
    vector.push_back(nullptr);
    const int error =
        fine ? posix_spawn(&pid, words[0].c_str(), &files, &attributes, vector.data(), environ) : EMFILE;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) return Status::ok;
    problem = fmt::format("{} cannot be started: {}", words[0], std::strerror(error));
    return fine ? Status::unsupported : Status::system;
}

// Where memory runs out, the system ends this process before the daemon or a program. Best effort, and before
// the change of users: afterwards the file is root's.
void die_first() {
    const FileDescriptor score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    (void)!write(score.get(), "1000", 4);
}

bool settle_host(char** arguments) {
    die_first();
    const bool fine = become(arguments[3]);
    // A change of users resets the parent-death signal, so it is set afterwards.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!fine) {
        std::fprintf(stderr, "%s cannot become user %s [OFP-0106]\n", arguments[0], arguments[3]);
        return false;
    }
    if (getppid() != std::atoi(arguments[1])) return false;
    use_cpus(arguments[2]);
    return true;
}

}  // namespace offpath::kernel_host
