#include "kernel_host/warden.h"

#include "kernel_host/descendants.h"
#include "kernel_host/host_process.h"
#include "kernel_host/openmp_mark.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <optional>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::kernel_host {
namespace {

volatile sig_atomic_t asked_to_end = 0, asked_to_stop = 0, asked_to_go_on = 0;

extern "C" void on_signal(int number) {
    if (number == SIGTERM) asked_to_end = 1;
    if (number == SIGUSR1) asked_to_stop = 1;
    if (number == SIGUSR2) asked_to_go_on = 1;
}

constexpr int used_signals[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};

class Warden {
  public:
    Warden(pid_t host, const Watched& watched) : host_(host), stops_(watched.stops) {
        for (const int pidfd : watched.pidfds)
            signs_.push_back({pidfd, POLLIN, 0});
        for (const int socket : watched.sockets)
            signs_.push_back({socket, POLLRDHUP, 0});
        sigemptyset(&none_);
        close_others();
    }
    [[noreturn]] void watch() {
        using Clock = std::chrono::steady_clock;
        std::optional<Clock::time_point> deadline;
        while (true) {
            reap();
            if (status_.has_value()) end(false);
            if (asked_to_end != 0) end(false);
            if (deadline.has_value() && Clock::now() >= *deadline) end(true);
            obey();
            timespec left{};
            if (deadline.has_value()) {
                const auto rest = std::max(*deadline - Clock::now(), Clock::duration(0));
                left = {0, std::chrono::nanoseconds(rest).count() % 1'000'000'000};
            }
            // Signals arrive in here only.
            if (ppoll(signs_.data(), signs_.size(), deadline.has_value() ? &left : nullptr, &none_) <= 0)
                continue;
            if (std::ranges::any_of(signs_, [](const pollfd& sign) { return sign.revents != 0; })) {
                signs_.clear();
                deadline = Clock::now() + grace;
            }
        }
    }

  private:
    // The host's descriptors, which would seem open as long as the warden has them.
    void close_others() const {
        const auto is_sign = [&](int descriptor) {
            return std::ranges::any_of(signs_, [&](const pollfd& sign) { return sign.fd == descriptor; });
        };
        for (int descriptor = first_host_fd; descriptor < first_host_fd + most_host_fds; ++descriptor)
            if (!is_sign(descriptor)) close(descriptor);
    }

    // Children that are not the host were orphans.
    void reap() {
        siginfo_t changed{};
        constexpr int any = WEXITED | WSTOPPED | WNOHANG;
        for (; waitid(P_ALL, 0, &changed, any | WNOWAIT) == 0 && changed.si_pid != 0; changed = {}) {
            int status = 0;
            if (changed.si_code != CLD_STOPPED) remove_openmp_mark(changed.si_pid);
            if (waitpid(changed.si_pid, &status, WNOHANG | WUNTRACED) != host_) continue;
            if (!WIFSTOPPED(status))
                status_ = status;
            else if (std::exchange(stopping_, false) && stops_ != nullptr)
                stops_->fetch_add(1, std::memory_order_release);
        }
    }
    void obey() {
        if (std::exchange(asked_to_stop, 0) != 0) {
            stopping_ = true;
            kill(-host_, SIGSTOP);
        }
        if (std::exchange(asked_to_go_on, 0) != 0) {
            stopping_ = false;
            kill(-host_, SIGCONT);
        }
    }
    // `program_ended`: that the host does not end well is nothing to report then.
    [[noreturn]] void end(bool program_ended) {
        if (!status_.has_value()) {
            kill(-host_, SIGKILL);
            siginfo_t ended{};
            while (waitid(P_PID, static_cast<id_t>(host_), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
            }
            remove_openmp_mark(host_);
            int status = 0;
            waitpid(host_, &status, 0);
            status_ = status;
        }
        // Without children it has no descendants, because orphans become children.
        do
            (void)end_children([](pid_t) { return true; }, std::chrono::milliseconds(100));
        while (waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD);
        if (program_ended) _exit(0);
        if (WIFSIGNALED(*status_)) {
            const int number = WTERMSIG(*status_);
            const rlimit no_core{0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            signal(number, SIG_DFL);
            sigset_t one;
            sigemptyset(&one);
            sigaddset(&one, number);
            raise(number);
            sigprocmask(SIG_UNBLOCK, &one, nullptr);
        }
        _exit(WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 1);
    }

    const pid_t host_;
    std::atomic<std::uint32_t>* const stops_;
    bool stopping_ = false;
    std::vector<pollfd> signs_;
    sigset_t none_{};
    std::optional<int> status_;
};

}  // namespace

bool guard_host(pid_t daemon, const Watched& watched) {
    struct sigaction action {
    }, before[std::size(used_signals)];
    action.sa_handler = on_signal;
    sigset_t used, mask;
    sigemptyset(&used);
    for (const int number : used_signals)
        sigaddset(&used, number);
    sigprocmask(SIG_BLOCK, &used, &mask);
    for (std::size_t i = 0; i < std::size(used_signals); ++i)
        sigaction(used_signals[i], &action, &before[i]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != daemon) return false;
    const pid_t warden = getpid(), host = fork();
    if (host < 0) return false;
    // Both set it: whichever comes first. A kill of the host's group must not meet the warden.
    setpgid(host, host);
    if (host > 0) Warden(host, watched).watch();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != warden) return false;
    for (std::size_t i = 0; i < std::size(used_signals); ++i)
        sigaction(used_signals[i], &before[i], nullptr);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    return true;
}

}  // namespace offpath::kernel_host
