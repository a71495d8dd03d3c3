#include "harness.h"

#include "control/socket.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace offpath::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t area_bytes = 1 << 20;
constexpr std::size_t record_bytes = 32 << 10;

struct Area {
    pthread_barrier_t barrier;
    std::uint32_t size;
    alignas(4096) char shared[4096];
    char records[area_bytes - 8192];
};
static_assert(sizeof(Area) <= area_bytes);

int gather(void* user, const void* mine, std::size_t bytes, void* all) {
    const Rank& me = *static_cast<const Rank*>(user);
    Area* area = reinterpret_cast<Area*>(static_cast<char*>(me.shared) - offsetof(Area, shared));
    if (bytes > record_bytes || me.size * record_bytes > sizeof area->records) return 1;
    std::memcpy(area->records + me.rank * record_bytes, mine, bytes);
    pthread_barrier_wait(&area->barrier);
    for (std::uint32_t i = 0; i < me.size; ++i)
        std::memcpy(static_cast<char*>(all) + i * bytes, area->records + i * record_bytes, bytes);
    pthread_barrier_wait(&area->barrier);
    return 0;
}

constexpr const char* local_host = "127.0.0.1";

std::string key_path(const std::string& directory) {
    return directory + "/key";
}

// Writes the key. All daemons of a directory use the same one.
void make_key(const std::string& directory) {
    if (fs::exists(key_path(directory))) return;
    const int fd = open(key_path(directory).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    char key[40];
    EXPECT_EQ(getrandom(key, sizeof key, 0), static_cast<ssize_t>(sizeof key));
    EXPECT_EQ(write(fd, key, sizeof key), static_cast<ssize_t>(sizeof key));
    close(fd);
}

// Passes the key through a pipe. It then belongs to no file, and kernels may run as the daemon's user.
int key_pipe(const std::string& directory) {
    std::ifstream file(key_path(directory), std::ios::binary);
    const std::string key(std::istreambuf_iterator<char>(file), {});
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    EXPECT_EQ(write(ends[1], key.data(), key.size()), static_cast<ssize_t>(key.size()));
    close(ends[1]);
    return ends[0];
}

// The port of the daemon that serves this host name from a directory. Without a daemon it is a port where
// nothing listens.
std::string port_in(const std::string& path) {
    std::string port = "1";
    std::ifstream(path) >> port;
    return port;
}

// Returns -2 while the process runs.
int collect(pid_t pid, double seconds) {
    const double give_up = now() + seconds;
    while (true) {
        int status = 0;
        if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (now() > give_up) return -2;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

}  // namespace

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool remote_mode() {
    const char* attach = std::getenv("OFFPATH_TEST_ATTACH");
    return attach != nullptr && std::string(attach) == "remote";
}

bool become_host(const std::string& name) {
    return unshare(CLONE_NEWUTS) == 0 && sethostname(name.c_str(), name.size()) == 0;
}

TemporaryDirectory::TemporaryDirectory() {
    char name[] = "/tmp/offpath-test-XXXXXX";
    path_ = mkdtemp(name);
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryDirectory::files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_))
        names.push_back(entry.path().filename());
    return names;
}

DaemonProcess::DaemonProcess(const std::string& directory, std::vector<std::string> options,
                             const std::string& host) {
    static int number = 0;
    log_path_ = directory + "/daemon" + std::to_string(number++) + ".log";
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    std::vector<std::string> words{OFFPATHD, "--dir", directory, "--ready-fd", "3", "--log-file", log_path_};
    const bool listens = std::find(options.begin(), options.end(), "--listen") != options.end();
    int key = -1;
    if (remote_mode() && !listens) {
        make_key(directory);
        key = key_pipe(directory);
        options.insert(options.end(),
                       {"--listen", std::string(local_host) + ":0", "--key-fd", "4", "--allow-kernels", "/"});
    }
    port_path_ = directory + "/" + (host.empty() ? control::host_name() : host) + ".port";
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!host.empty() && !become_host(host)) _exit(126);
        const int err = open((log_path_ + ".err").c_str(), O_WRONLY | O_CREAT, 0600);
        dup2(err, 2);
        // Both descriptors move away first, so that neither dup2 overwrites one of them.
        const int ready_end = fcntl(ready[1], F_DUPFD_CLOEXEC, 10), key_end = fcntl(key, F_DUPFD_CLOEXEC, 10);
        dup2(ready_end, 3);
        if (key >= 0) dup2(key_end, 4);
        setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 0);  // as tests/support/daemons.sh
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    close(ready[1]);
    if (key >= 0) close(key);
    pollfd entry{ready[0], POLLIN, 0};
    char byte = 0;
    ready_ = poll(&entry, 1, 20000) > 0 && read(ready[0], &byte, 1) == 1 && byte == '1';
    close(ready[0]);
}

DaemonProcess::~DaemonProcess() {
    if (pid_ <= 0) return;
    if (wait(0) == -2) {
        signal(SIGTERM);
        if (wait(5) == -2) signal(SIGKILL);
        wait(5);
    }
    if (testing::Test::HasFailure()) std::fprintf(stderr, "%s", log().c_str());
}

bool DaemonProcess::running() const {
    siginfo_t info{};
    return pid_ > 0 && waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void DaemonProcess::signal(int number) const {
    if (pid_ > 0) kill(pid_, number);
}

int DaemonProcess::wait(double seconds) {
    if (pid_ <= 0) return 0;
    const int result = collect(pid_, seconds);
    if (result != -2) pid_ = -1;
    return result;
}

std::string DaemonProcess::log() const {
    std::string all;
    for (const std::string& path : {log_path_, log_path_ + ".err"}) {
        std::ifstream file(path);
        all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
}

std::string DaemonProcess::address() const {
    return std::string(local_host) + ":" + port_in(port_path_);
}

std::size_t DaemonProcess::descriptors() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid_) + "/fd"))
        ++count;
    return count;
}

double DaemonProcess::cpu_seconds() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string word;
    for (int i = 0; i < 11; ++i)
        fields >> word;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

offpath_status_t Rank::try_init(offpath_context_h* context) const {
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = threads;
    params.allgather = allgather;
    params.allgather_user = allgather_user;
    params.rank = rank;
    params.size = size;
    params.local_rank = rank;
    params.directory = directory.c_str();
    if (remote_mode()) {
        const std::string device = std::string(local_host) + ":" + port_in(control::port_path(directory));
        setenv("OFFPATH_DEVICES", device.c_str(), 1);
        setenv("OFFPATH_KEY_FILE", key_path(directory).c_str(), 1);
    }
    return offpath_init(&params, context);
}

offpath_context_h Rank::init() const {
    offpath_context_h context = nullptr;
    expect(try_init(&context), OFFPATH_OK, "offpath_init");
    return context;
}

offpath_team_h Rank::world(offpath_context_h context) const {
    offpath_team_h team = nullptr;
    expect(offpath_team_world(context, &team), OFFPATH_OK, "offpath_team_world");
    return team;
}

void Rank::barrier() const {
    Area* area = reinterpret_cast<Area*>(static_cast<char*>(shared) - offsetof(Area, shared));
    pthread_barrier_wait(&area->barrier);
}

void require(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "pid %d: %s\n", getpid(), what.c_str());
    _exit(1);
}

void expect(offpath_status_t got, offpath_status_t wanted, const std::string& what) {
    require(got == wanted,
            what + ": " + offpath_status_string(got) + " instead of " + offpath_status_string(wanted));
}

Job::Job(std::uint32_t size, const std::string& directory, const Body& body, offpath_threads_t threads) {
    area_ = mmap(nullptr, area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Area* area = static_cast<Area*>(area_);
    area->size = size;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&area->barrier, &attributes, size);
    pthread_barrierattr_destroy(&attributes);
    for (std::uint32_t i = 0; i < size; ++i) {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            Rank rank;
            rank.rank = i;
            rank.size = size;
            rank.directory = directory;
            rank.threads = threads;
            rank.shared = area->shared;
            rank.allgather = gather;
            rank.allgather_user = &rank;
            body(rank);
            _exit(0);
        }
        pids_.push_back(pid);
    }
}

Job::~Job() {
    wait(0);
    munmap(area_, area_bytes);
}

void* Job::shared() const {
    return static_cast<Area*>(area_)->shared;
}

std::vector<int> Job::wait(double seconds) {
    const double give_up = now() + seconds;
    std::vector<int> results;
    for (pid_t& pid : pids_) {
        if (pid <= 0) continue;
        int result = collect(pid, give_up - now());
        if (result == -2) {
            kill(pid, SIGKILL);
            collect(pid, 5);
        }
        pid = -1;
        results.push_back(result);
    }
    return results;
}

bool all_right(std::uint32_t size, const std::string& directory, const Job::Body& body,
               offpath_threads_t threads) {
    Job job(size, directory, body, threads);
    for (int result : job.wait())
        if (result != 0) return false;
    return true;
}

void endless_job(const Rank& me, offpath_status_t wanted_end, bool by_test) {
    offpath_context_h context = me.init();
    offpath_team_h world = me.world(context);
    auto* started = static_cast<std::atomic<std::uint32_t>*>(me.shared);
    std::vector<char> out(me.size * 50000), in(me.size * 50000);
    const double give_up = now() + 40;
    while (true) {
        offpath_request_h request = nullptr;
        offpath_status_t status = offpath_ialltoall(world, out.data(), in.data(), 50000, &request);
        if (status == OFFPATH_OK) {
            if (by_test) {
                while ((status = offpath_request_test(request)) == OFFPATH_IN_PROGRESS)
                    std::this_thread::yield();
            } else {
                status = offpath_request_wait(request);
            }
            offpath_request_free(request);
        }
        if (status != OFFPATH_OK) {
            expect(status, wanted_end, "the end of the job");
            break;
        }
        started->fetch_add(1);
        require(now() < give_up, "nothing went wrong within 40 s");
    }
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

void wait_until_started(const Job& job, std::uint32_t count) {
    const double give_up = now() + 20;
    while (static_cast<std::atomic<std::uint32_t>*>(job.shared())->load() < count && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<int> zeros(std::size_t count) {
    return std::vector<int>(count, 0);
}

}  // namespace offpath::test
