// A sched_yield() that rests where it is called again and again. Tests run more ranks than there are cores,
// and several jobs at the same time: ranks that wait would otherwise take about half of all time from those
// that compute. It is preloaded where RESTING_YIELD names it (mpirun.sh, mpiexec_mpich.sh,
// support/daemons.sh); tests/suite sets that. Not with sanitizers and in the long tests, so that ranks
// also wait as users' do. Nor where target regions call MPI: their devices would only wait the longer.
//
// And a dlclose() that unloads nothing: Open MPI 4 unloads its components while its progress thread may still
// run a call of theirs. With the front end they stay by themselves (frontends/mpi/runtime/kept_components.h).
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

constexpr std::uint64_t same_wait_ns = 200'000;  // yields that are closer to each other belong to one wait
constexpr unsigned real_yields = 4;
constexpr long rest_ns = 50'000;

std::uint64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

struct Wait {
    unsigned yields = 0;
    std::uint64_t last_ns = 0;
};

}  // namespace

extern "C" [[gnu::visibility("default")]] int dlclose(void*) noexcept {
    return 0;
}

extern "C" [[gnu::visibility("default")]] int sched_yield() noexcept {
    static thread_local Wait wait;
    if (now_ns() - wait.last_ns > same_wait_ns) wait.yields = 0;
    if (++wait.yields < real_yields) {
        syscall(SYS_sched_yield);
    } else {
        // The kernel ends a rest up to the thread's slack later, usually 50 us.
        const int slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
        const timespec rest{0, rest_ns};
        nanosleep(&rest, nullptr);
        prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_ns), 0, 0, 0);
    }
    wait.last_ns = now_ns();
    return 0;
}
