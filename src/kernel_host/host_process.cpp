#include "kernel_host/host_process.h"

#include "base/file_descriptor.h"
#include "base/log.h"
#include "kernel_host/descendants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>

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
    return syscall(SYS_capset, header, none) == 0;
}

// The wardens that this process has started and not reaped.
std::mutex wardens_mutex;
std::set<pid_t> wardens;
bool adopts_orphans = false;

// How long a warden may take to end what it guards.
constexpr auto warden_patience = std::chrono::seconds(2);

// Marks the environment of hosts, and of what they start: the daemon may have children of other origin.
std::string mark() {
    return fmt::format("offpath_host_of={}", getpid());
}

bool has_mark(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
    const std::string wanted = mark();
    for (std::string entry; std::getline(file, entry, '\0');)
        if (entry == wanted) return true;
    return false;
}

void end_orphans() {
    std::lock_guard lock(wardens_mutex);
    const auto is_orphan = [](pid_t pid) { return !wardens.contains(pid) && has_mark(pid); };
    if (adopts_orphans && !end_children(is_orphan, warden_patience))
        log::error(Code::client_lost, "processes of a program's code do not end");
}

}  // namespace

std::vector<std::string> host_environment() {
    static constexpr std::string_view names[] = {
        "PATH",     "HOME", "USER",   "LOGNAME",         "SHELL",     "LANG",
        "LANGUAGE", "TZ",   "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD"};
    // The last four are of tools that look into programs.
    static constexpr std::string_view prefixes[] = {
        "LC_",      "OMP_",      "GOMP_",  "KMP_",       "LIBOMPTARGET_", "UCX_",
        "OFFPATH_", "OMPI_MCA_", "MPICH_", "MPIR_CVAR_", "MALLOC_",       "GLIBC_TUNABLES",
        "QEMU_",    "ASAN_",     "TSAN_",  "UBSAN_",     "LSAN_",         "LLVM_PROFILE_FILE",
        "GCOV_"};
    std::vector<std::string> kept;
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view entry = *each, name = entry.substr(0, entry.find('='));
        const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
        if (name == "OFFPATH_KEY_FILE" || name == "offpath_host_of") continue;
        if (std::ranges::find(names, name) != std::end(names) || std::ranges::any_of(prefixes, begins))
            kept.emplace_back(entry);
    }
    kept.push_back(mark());
    return kept;
}

void adopt_orphans() {
    std::lock_guard lock(wardens_mutex);
    adopts_orphans = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void kill_host(pid_t pid) {
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);  // what it guards may have stopped it
}

bool reap_host(pid_t pid, int options, int& status) {
    const auto end = std::chrono::steady_clock::now() + warden_patience;
    pid_t reaped;
    while ((reaped = waitpid(pid, &status, WNOHANG)) == 0 || (reaped < 0 && errno == EINTR)) {
        if ((options & WNOHANG) != 0) return false;
        if (std::chrono::steady_clock::now() > end) kill(pid, SIGKILL);
        const timespec moment{0, 200'000};
        nanosleep(&moment, nullptr);
    }
    if (reaped < 0) status = 0;
    {
        std::lock_guard lock(wardens_mutex);
        wardens.erase(pid);
    }
    // A warden that ends by itself has ended all others.
    if (reaped > 0 && WIFSIGNALED(status)) end_orphans();
    return true;
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
    words.insert(words.end(), {config.program, std::to_string(getpid()), cpus,
                               config.user != nullptr ? *config.user : ""});
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> vector;
    for (std::string& word : words)
        vector.push_back(word.data());
    vector.push_back(nullptr);
    std::vector<std::string> environment = host_environment();
    std::vector<char*> variables;
    for (std::string& each : environment)
        variables.push_back(each.data());
    variables.push_back(nullptr);
    int error = EMFILE;
    if (fine) {
        std::lock_guard lock(wardens_mutex);
        error = posix_spawn(&pid, words[0].c_str(), &files, &attributes, vector.data(), variables.data());
        if (error == 0) wardens.insert(pid);
    }
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

bool settle_host(char** arguments, const Watched& watched) {
    if (!guard_host(std::atoi(arguments[1]), watched)) return false;
    const pid_t warden = getppid();
    die_first();
    const bool fine = become(arguments[3]) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    // A change of users resets the parent-death signal, so it is set afterwards.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!fine) {
        std::fprintf(stderr, "%s cannot become user %s [OFP-0106]\n", arguments[0], arguments[3]);
        return false;
    }
    if (getppid() != warden) return false;
    use_cpus(arguments[2]);
    return true;
}

}  // namespace offpath::kernel_host
