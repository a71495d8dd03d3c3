// Ranks whose windows the device has mapped, and direct paths between two proxies of one daemon. A test may
// stop the daemon to find out which calls wait for it.
#pragma once

#include "control/life_signs.h"
#include "harness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::test {

inline constexpr std::size_t window_bytes = 1 << 20;

// A rank with a window that the device has mapped, and a path to the next rank's proxy.
struct Fixture {
    explicit Fixture(const Rank& rank) : me(rank), context(rank.init()), right((rank.rank + 1) % rank.size) {
        expect(offpath_mem_alloc(context, window_bytes, &base), OFFPATH_OK, "alloc");
        std::memset(base, 0, window_bytes);
        expect(offpath_window_create(me.world(context), base, window_bytes, &window), OFFPATH_OK, "create");
        me.barrier();
    }
    // The first operation only requests the path.
    void open(std::uint32_t target) const {
        std::uint64_t word = 0;
        const double begin = now();
        while (offpath_direct_get(window, &word, 8, target, 0) != OFFPATH_OK) {
            require(now() - begin < 30, "there is no direct path");
            usleep(100);
        }
    }
    void finish() {
        me.barrier();
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        expect(offpath_mem_free(context, base), OFFPATH_OK, "free");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }
    offpath_status_t put(const std::uint64_t& word, std::uint64_t offset = 64) const {
        return offpath_direct_put(window, &word, sizeof word, right, offset);
    }
    void flush(offpath_status_t wanted = OFFPATH_OK) const {
        expect(offpath_window_flush(window, OFFPATH_ALL_TARGETS, nullptr), wanted, "flush");
    }
    std::uint64_t* words() const { return static_cast<std::uint64_t*>(base); }

    const Rank& me;
    offpath_context_h context;
    std::uint32_t right;
    void* base = nullptr;
    offpath_window_h window = nullptr;
};

// A place for operations that must go through this rank's own proxy: a list of segments.
struct ByOwnProxy {
    ByOwnProxy(std::uint32_t target, std::uint64_t offset, std::uint64_t bytes)
        : segment{offset, bytes}, place{target, 0, &segment, 1} {}
    ByOwnProxy(const ByOwnProxy&) = delete;
    ByOwnProxy& operator=(const ByOwnProxy&) = delete;
    offpath_segment_t segment;
    offpath_place_t place;
};

// Runs `body` on ranks that use two proxies. Their direct paths are encrypted if they shall be, and only
// then.
inline bool on_two_proxies(std::uint32_t ranks, const Job::Body& body,
                           offpath_threads_t threads = OFFPATH_THREADS_SINGLE, bool encrypt = false) {
    TemporaryDirectory directory;
    std::vector<std::string> options{"--proxies", "2", "--direct", "on"};
    if (encrypt) options.emplace_back("--encrypt");
    DaemonProcess daemon(directory.path(), options);
    bool well = daemon.ready() && all_right(ranks, directory.path(), body, threads);
    const std::string log = daemon.log();
    const std::size_t line = log.find("direct: ");
    const bool says = line != std::string::npos &&
                      std::string_view(log).substr(line, log.find('\n', line) - line).find(", encrypted (") !=
                          std::string_view::npos;
    well = well && says == encrypt;
    if (!well) ADD_FAILURE() << daemon.log();
    return well;
}

inline pid_t daemon_of(const Rank& me) {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    std::FILE* file = std::fopen((me.directory + "/" + name + ".pid").c_str(), "r");
    int pid = 0;
    require(file != nullptr && std::fscanf(file, "%d", &pid) == 1, "the daemon's number");
    std::fclose(file);
    return pid;
}

inline bool all_stopped(pid_t pid) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    return std::ranges::all_of(std::filesystem::directory_iterator(tasks), [pid](const auto& entry) {
        return control::thread_state(pid, std::stoi(entry.path().filename())).letter == 'T';
    });
}

// Returns when all threads of the process have stopped.
inline void stop(pid_t pid) {
    require(kill(pid, SIGSTOP) == 0, "stop");
    for (const double begin = now(); !all_stopped(pid); usleep(1000))
        require(now() - begin < 30, "the process does not stop");
}

// Stops the daemon, runs `before` and then `call`, and continues the daemon after `stopped_s` at the latest.
// Returns whether `call` returned only after that. Sooner, the daemon continues when `call` has returned.
template <typename Before, typename Call>
bool returns_after(double stopped_s, const Rank& me, Before&& before, Call&& call) {
    const pid_t daemon = daemon_of(me);
    stop(daemon);
    before();
    struct Shared {
        std::atomic<bool> returned, continued;
    };
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "shared memory");
    auto& shared = *new (memory) Shared{};
    const pid_t helper = fork();
    if (helper == 0) {
        for (const double end = now() + stopped_s; now() < end && !shared.returned;)
            usleep(1000);
        shared.continued = true;
        kill(daemon, SIGCONT);
        _exit(0);
    }
    require(helper > 0, "fork");
    call();
    const bool waited = shared.continued;
    shared.returned = true;
    int status = 0;
    require(waitpid(helper, &status, 0) == helper, "the helper's end");
    munmap(memory, sizeof(Shared));
    return waited;
}
// A call that waits for the daemon, whatever the load: it cannot return before the daemon continues.
template <typename Before, typename Call>
bool waits(const Rank& me, Before&& before, Call&& call) {
    return returns_after(0.3, me, before, call);
}
// A call that does not wait has much time to show it.
template <typename Before, typename Call>
bool waits_for_long(const Rank& me, Before&& before, Call&& call) {
    return returns_after(20, me, before, call);
}

// Operations that rank 0 starts on rank 1 while the daemon is stopped must end soon after it is killed; then
// runs `after`.
template <typename Start, typename After>
void ends_with_the_proxy(Start&& start, After&& after) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--proxies", "2", "--direct", "on"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [&](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            const pid_t pid = daemon_of(me);
            stop(pid);
            start(f);
            require(kill(pid, SIGKILL) == 0, "kill");
            const double begin = now();
            f.flush(OFFPATH_ERR_PEER_LOST);
            require(now() - begin < 30, "it takes long to notice");
            after(f);
        }
        me.barrier();
        _exit(0);
    });
    EXPECT_EQ(job.wait(60), (std::vector<int>{0, 0}));
}

class Direct : public ::testing::Test {
  protected:
    void SetUp() override {
        if (remote_mode()) GTEST_SKIP() << "ranks with a device of its own system have no direct paths";
    }
};

}  // namespace offpath::test
