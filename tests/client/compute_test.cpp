// Kernels on the device.
#include "back_end_fixture.h"
#include "kernel_calls.h"

#include "control/message_socket.h"
#include "control/socket.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

namespace offpath::test {
namespace {

// Starts test_meet, which runs until `other` exists.
offpath_request_h start_meet(offpath_kernel_h meet, const std::string& mine, const std::string& other) {
    const std::string arguments = mine + " " + other;
    offpath_request_h request = nullptr;
    expect(offpath_compute(meet, arguments.data(), arguments.size(), nullptr, 0, &request), OFFPATH_OK,
           "compute");
    return request;
}

void create(const std::string& path) {
    require(std::ofstream(path).is_open(), "a file for test_meet");
}

// A message from this rank to itself. The device takes a rank's commands in order, so afterwards it has taken
// all earlier ones.
void pass_commands(const Rank& me, offpath_team_h world) {
    char from = 1, to = 0;
    offpath_request_h sent = nullptr, received = nullptr;
    expect(offpath_recv_offload(world, &to, 1, me.rank, 7, &received), OFFPATH_OK, "recv");
    expect(offpath_send_offload(world, &from, 1, me.rank, 7, &sent), OFFPATH_OK, "send");
    expect(finish(sent), OFFPATH_OK, "sent");
    expect(finish(received), OFFPATH_OK, "received");
}

class Compute : public BackEndTest {};
INSTANTIATE_TEST_SUITE_P(BackEnds, Compute, testing::Values("auto", "staged"));

TEST_P(Compute, GivesTheRightValues) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h combine = load(context, "test_combine");
        for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{700001}}) {
            // Each of the three buffers is in ordinary memory first, then inside an allocation.
            for (unsigned mapped = 0; mapped < 8; ++mapped) {
                std::vector<double> ordinary[3];
                double* at[3];
                void* memory[3] = {};
                for (unsigned i = 0; i < 3; ++i) {
                    if ((mapped >> i & 1) != 0) {
                        expect(offpath_mem_alloc(context, (n + 20) * sizeof(double), &memory[i]), OFFPATH_OK,
                               "alloc");
                        at[i] = static_cast<double*>(memory[i]) + 10;
                    } else {
                        ordinary[i].assign(n + 20, 0);
                        at[i] = ordinary[i].data() + 10;
                    }
                    std::fill(at[i] - 10, at[i] + n + 10, -7);
                    for (std::size_t k = 0; k < n; ++k)
                        at[i][k] = static_cast<double>(k * (i + 1));
                }
                const std::size_t bytes = n * sizeof(double);
                const double factor = 2.5;
                expect(run(combine, factor,
                           {{at[0], bytes, OFFPATH_IN},
                            {at[1], bytes, OFFPATH_INOUT},
                            {at[2], bytes, OFFPATH_OUT}}),
                       OFFPATH_OK, "combine");
                for (std::size_t k = 0; k < n; ++k) {
                    const auto value = static_cast<double>(k);
                    require(at[0][k] == value && at[1][k] == 2 * value + 1 &&
                                at[2][k] == value * factor + 2 * value,
                            "values of " + std::to_string(n) + " in " + std::to_string(mapped));
                }
                for (double* buffer : at)
                    for (std::size_t k = 0; k < 10; ++k)
                        require(buffer[-1 - static_cast<long>(k)] == -7 && buffer[n + k] == -7, "around it");
                for (void* allocation : memory)
                    if (allocation != nullptr)
                        expect(offpath_mem_free(context, allocation), OFFPATH_OK, "free");
            }
        }
        expect(offpath_kernel_unload(combine), OFFPATH_OK, "unload");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// A kernel may write to a copy that it should only read. The writes stay in the copy.
TEST_P(Compute, ReadsWhatItMayOnlyRead) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h scribble = load(context, "test_scribble");
        std::vector<char> memory(100000, 1);
        expect(run(scribble, 0, {{memory.data(), memory.size(), OFFPATH_IN}}), OFFPATH_OK, "scribble");
        require(memory == std::vector<char>(100000, 1), "unchanged");
        expect(run(scribble, 0, {{memory.data(), 50000, OFFPATH_OUT}}), OFFPATH_OK, "scribble");
        require(memory[49999] == -1 && memory[50000] == 1, "the first half");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// There are many kernels at once. Each needs what the one before wrote, whether that was copied or not.
TEST_P(Compute, KeepsTheOrder) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h step = load(context, "test_step");
        constexpr std::size_t n = 50000, rounds = 200;
        std::vector<std::uint64_t> ordinary(n), wanted(n);
        void* memory = nullptr;
        expect(offpath_mem_alloc(context, n * 8, &memory), OFFPATH_OK, "alloc");
        auto* mapped = static_cast<std::uint64_t*>(memory);
        std::iota(ordinary.begin(), ordinary.end(), 0);
        std::iota(mapped, mapped + n, 0);
        std::iota(wanted.begin(), wanted.end(), 0);
        std::vector<offpath_request_h> requests;
        for (std::uint64_t round = 0; round < rounds; ++round) {
            requests.push_back(start(step, round, {{ordinary.data(), n * 8, OFFPATH_INOUT}}));
            requests.push_back(start(step, round, {{mapped, n * 8, OFFPATH_INOUT}}));
            for (std::uint64_t& value : wanted)
                value = 3 * value + round;
        }
        for (offpath_request_h request : requests)
            expect(finish(request), OFFPATH_OK, "step");
        require(ordinary == wanted, "ordinary memory");
        require(std::equal(wanted.begin(), wanted.end(), mapped), "mapped memory");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Compute, HandsOverArgumentsAndBuffers) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h describe = load(context, "test_describe");
        std::vector<unsigned char> arguments(OFFPATH_KERNEL_ARGUMENT_BYTES);
        std::iota(arguments.begin(), arguments.end(), 0);
        std::uint64_t out[32];
        char odd[OFFPATH_KERNEL_BUFFERS][16];
        for (const std::size_t count : {1, 2, OFFPATH_KERNEL_BUFFERS}) {
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, arguments.size()}) {
                Buffers buffers{{out, sizeof out, OFFPATH_OUT}};
                for (std::size_t i = 1; i < count; ++i)
                    buffers.push_back({i == 1 ? nullptr : odd[i] + 1, i == 1 ? 0u : i % 15, OFFPATH_IN});
                offpath_request_h request = nullptr;
                auto copy = arguments;
                expect(offpath_compute(describe, copy.data(), bytes, buffers.data(), count, &request),
                       OFFPATH_OK, "compute");
                std::fill(copy.begin(), copy.end(), 255);
                expect(finish(request), OFFPATH_OK, "describe");
                require(out[0] == count && out[1] == bytes && out[3] == 0, "what it was given");
                require(
                    out[2] == std::accumulate(arguments.begin(), arguments.begin() + static_cast<long>(bytes),
                                              std::uint64_t{0}),
                    "the arguments as they were");
                for (std::size_t i = 1; i < count; ++i)
                    require(out[3 + i] == 0, "alignment of copies, null for nothing");
            }
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Compute, SaysWhatIsWrong) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h kernel = nullptr;
        const char* library = OFFPATH_TEST_KERNELS;
        expect(offpath_kernel_load(context, "/no/such/library.so", "x", &kernel), OFFPATH_ERR_INVALID,
               "path");
        expect(offpath_kernel_load(context, library, "no_such_symbol", &kernel), OFFPATH_ERR_INVALID,
               "symbol");
        expect(offpath_kernel_load(context, nullptr, "x", &kernel), OFFPATH_ERR_INVALID, "null");
        expect(offpath_kernel_load(context, library, "", &kernel), OFFPATH_ERR_INVALID, "no symbol");
        expect(offpath_kernel_load(context, std::string(5000, 'x').c_str(), "x", &kernel),
               OFFPATH_ERR_INVALID, "a long path");
        require(kernel == nullptr, "set on success only");
        offpath_kernel_h result = load(context, "test_result");
        offpath_request_h request = nullptr;
        const std::vector<char> arguments(OFFPATH_KERNEL_ARGUMENT_BYTES + 1);
        Buffers many(OFFPATH_KERNEL_BUFFERS + 1, {nullptr, 0, OFFPATH_IN});
        char byte = 0;
        offpath_kernel_buffer_t buffer{&byte, 1, static_cast<offpath_access_t>(0)};
        expect(offpath_compute(result, arguments.data(), arguments.size(), nullptr, 0, &request),
               OFFPATH_ERR_INVALID, "arguments");
        expect(offpath_compute(result, nullptr, 0, many.data(), many.size(), &request), OFFPATH_ERR_INVALID,
               "buffers");
        expect(offpath_compute(result, nullptr, 0, &buffer, 1, &request), OFFPATH_ERR_INVALID, "access");
        buffer = {nullptr, 1, OFFPATH_IN};
        expect(offpath_compute(result, nullptr, 0, &buffer, 1, &request), OFFPATH_ERR_INVALID, "no address");
        expect(offpath_compute(nullptr, nullptr, 0, nullptr, 0, &request), OFFPATH_ERR_INVALID, "no kernel");
        for (const auto& [returned, status] :
             {std::pair(0, OFFPATH_OK), std::pair(-5, OFFPATH_ERR_MEMORY), std::pair(-11, OFFPATH_ERR_SYSTEM),
              std::pair(-12, OFFPATH_ERR_SYSTEM), std::pair(1, OFFPATH_ERR_SYSTEM)})
            expect(run(result, returned, {}), status, "kernel that returns " + std::to_string(returned));
        expect(run(load(context, "test_throw"), 0, {}), OFFPATH_ERR_SYSTEM, "an exception");
        // One buffer that is to be read is missing, and one that is to be written.
        void* hole = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (const offpath_access_t access : {OFFPATH_IN, OFFPATH_OUT})
            expect(run(result, 0, {{hole, 1 << 20, access}}), OFFPATH_ERR_ACCESS, "a hole");
        expect(run(result, 0, {}), OFFPATH_OK, "after all that");
        expect(offpath_kernel_unload(result), OFFPATH_OK, "unload");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_TRUE(daemon.running());
}

// The static data of a library stay until it is unloaded.
TEST_P(Compute, KeepsTheLibrarysMemory) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        int calls = 0;
        for (int load_again = 0; load_again < 2; ++load_again) {
            offpath_kernel_h count = load(context, "test_count_calls");
            for (int i = 1; i <= 3; ++i) {
                expect(run(count, 0, {{&calls, sizeof calls, OFFPATH_OUT}}), OFFPATH_OK, "count");
                require(calls == i, "calls so far");
            }
            // Kernels that were started come before the unload.
            offpath_request_h request = start(count, 0, {{&calls, sizeof calls, OFFPATH_OUT}});
            expect(offpath_kernel_unload(count), OFFPATH_OK, "unload");
            expect(finish(request), OFFPATH_OK, "the last one");
            require(calls == 4, "the last one");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Even where the device meets the unload and the next load at once.
TEST_P(Compute, UnloadsBeforeALaterLoad) {
    EXPECT_TRUE(all_right(1, directory.path(), [device = daemon.pid()](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h count = load(context, "test_count_calls");
        for (int load_again = 0; load_again < 5; ++load_again) {
            int calls = 0;
            expect(run(count, 0, {{&calls, sizeof calls, OFFPATH_OUT}}), OFFPATH_OK, "count");
            require(calls == 1, "loaded anew");
            require(kill(device, SIGSTOP) == 0, "stop");
            expect(offpath_kernel_unload(count), OFFPATH_OK, "unload");
            std::thread goes_on([device] {
                usleep(20'000);  // meanwhile the load is sent
                kill(device, SIGCONT);
            });
            count = load(context, "test_count_calls");
            goes_on.join();
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// A crash ends what its process had started, and nothing else. The library can be loaded again.
TEST_P(Compute, SurvivesCrashes) {
    const std::string path = directory.path() + "/go";
    EXPECT_TRUE(all_right(2, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        offpath_kernel_h meet = load(context, "test_meet");
        if (me.rank == 1) {
            offpath_request_h request = start_meet(meet, path + "_begun", path);
            me.barrier();
            me.barrier();
            create(path);
            expect(finish(request), OFFPATH_OK, "of another process");
        } else {
            offpath_kernel_h count = load(context, "test_count_calls");
            int calls = 0;
            me.barrier();
            for (const char* way : {"test_crash", "test_leave"}) {
                offpath_kernel_h crash = load(context, way);
                // The device has all three before the crash.
                const std::string go_on = path + "_" + way;
                offpath_request_h before = start_meet(meet, go_on + "_begun", go_on);
                offpath_request_h crashed = start(crash, 0, {});
                offpath_request_h behind = start(count, 0, {{&calls, sizeof calls, OFFPATH_OUT}});
                pass_commands(me, world);
                create(go_on);
                expect(finish(before), OFFPATH_OK, "before it");
                expect(finish(crashed), OFFPATH_ERR_CANCELED, way);
                expect(finish(behind), OFFPATH_ERR_CANCELED, "behind it");
                expect(run(count, 0, {{&calls, sizeof calls, OFFPATH_OUT}}), OFFPATH_OK, "later");
                require(calls == 1, "with new memory");
            }
            me.barrier();
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_TRUE(daemon.running());
}

TEST_P(Compute, RunsProcessesSideBySide) {
    const std::string path = directory.path() + "/meet";
    EXPECT_TRUE(all_right(2, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h meet = load(context, "test_meet");
        offpath_request_h request =
            start_meet(meet, path + std::to_string(me.rank), path + std::to_string(1 - me.rank));
        expect(finish(request), OFFPATH_OK, "both run at a time");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Compute, LetsCommunicationGoOn) {
    const std::string path = directory.path() + "/go";
    EXPECT_TRUE(all_right(2, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        offpath_kernel_h meet = load(context, "test_meet");
        std::vector<char> send(200000, static_cast<char>(me.rank + 1)), receive(200000);
        me.barrier();
        const std::string go_on = path + std::to_string(me.rank);
        offpath_request_h kernel = start_meet(meet, go_on + "_begun", go_on);
        for (int i = 0; i < 5; ++i) {
            offpath_request_h exchange = nullptr;
            expect(offpath_ialltoall(world, send.data(), receive.data(), 100000, &exchange), OFFPATH_OK,
                   "start");
            expect(finish(exchange), OFFPATH_OK, "alltoall");
        }
        require(receive[0] == 1 && receive[100000] == 2, "what was exchanged");
        expect(offpath_request_test(kernel), OFFPATH_IN_PROGRESS, "meanwhile");
        create(go_on);
        expect(finish(kernel), OFFPATH_OK, "meet");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Freeing memory waits for the kernel. Afterwards the kernel's process maps new memory at the same address.
TEST_P(Compute, FreesMemoryAfterItsKernels) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h step = load(context, "test_step"), sleeper = load(context, "test_sleep");
        for (std::uint64_t round = 0; round < 20; ++round) {
            void* memory = nullptr;
            expect(offpath_mem_alloc(context, 4096, &memory), OFFPATH_OK, "alloc");
            auto* values = static_cast<std::uint64_t*>(memory);
            values[0] = 5;
            offpath_request_h slow = start(sleeper, 1, {});
            offpath_request_h request = start(step, round, {{memory, 4096, OFFPATH_INOUT}});
            if (round % 2 == 0) {
                expect(finish(request), OFFPATH_OK, "step");
                require(values[0] == 15 + round, "this one's value");
                expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
            } else {
                expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
                expect(offpath_request_test(request), OFFPATH_OK, "done by then");
                expect(offpath_request_free(request), OFFPATH_OK, "free");
            }
            expect(finish(slow), OFFPATH_OK, "sleep");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST(KernelHosts, AreLostWithTheDaemon) {
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h sleeper = load(context, "test_sleep");
        std::vector<char> memory(1 << 20);
        offpath_request_h running = start(sleeper, 60000, {{memory.data(), memory.size(), OFFPATH_INOUT}});
        offpath_request_h waiting = start(sleeper, 60000, {});
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        *static_cast<volatile int*>(me.shared) = 1;
        expect(finish(running), OFFPATH_ERR_PEER_LOST, "running");
        expect(finish(waiting), OFFPATH_ERR_PEER_LOST, "waiting");
        offpath_request_h late = nullptr;
        expect(offpath_compute(sleeper, nullptr, 0, nullptr, 0, &late), OFFPATH_ERR_PEER_LOST, "late");
        offpath_kernel_h another = nullptr;
        expect(offpath_kernel_load(context, OFFPATH_TEST_KERNELS, "test_step", &another),
               OFFPATH_ERR_PEER_LOST, "load");
        expect(offpath_kernel_unload(sleeper), OFFPATH_OK, "unload");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    for (int i = 0; i < 12000 && *static_cast<volatile int*>(job.shared()) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const pid_t host = host_process(daemon);
    ASSERT_GT(host, 0) << daemon.log();
    daemon.signal(SIGKILL);
    EXPECT_EQ(job.wait(), std::vector<int>{0});
    EXPECT_TRUE(goes(host));
}

// All processes whose environment has the mark of the daemon's hosts.
std::vector<pid_t> marked(pid_t daemon) {
    const std::string mark = "offpath_host_of=" + std::to_string(daemon);
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "environ", std::ios::binary);
        for (std::string word; std::getline(file, word, '\0');)
            if (word == mark) found.push_back(std::stoi(entry.path().filename()));
    }
    return found;
}

// Whatever processes a kernel has left end with its client, and with a daemon that is killed.
TEST(KernelHosts, LeaveNoProcesses) {
    for (const bool killed : {false, true}) {
        TemporaryDirectory directory;
        DaemonProcess daemon{directory.path()};
        ASSERT_TRUE(daemon.ready()) << daemon.log();
        Job job(1, directory.path(), [&](const Rank& me) {
            offpath_context_h context = me.init();
            expect(run(load(context, "test_leave_processes"), 0, {}), OFFPATH_OK, "leave");
            while (marked(daemon.pid()).size() < 4)
                usleep(1000);
            if (killed)
                daemon.signal(SIGKILL);
            else
                expect(offpath_finalize(context), OFFPATH_OK, "finalize");
            _exit(0);
        });
        EXPECT_EQ(job.wait(60), std::vector<int>{0});
        std::vector<pid_t> left = marked(daemon.pid());
        for (int i = 0; i < 6000 && !left.empty(); ++i, left = marked(daemon.pid()))
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_TRUE(left.empty()) << left.size() << " processes";
    }
}

TEST(KernelHosts, EndWithTheirClient) {
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    const std::size_t descriptors = daemon.descriptors();
    for (const bool killed : {true, false}) {
        Job job(1, directory.path(), [&](const Rank& me) {
            offpath_context_h context = me.init();
            offpath_kernel_h sleeper = load(context, "test_sleep");
            if (killed) start(sleeper, 60000, {});
            *static_cast<volatile int*>(me.shared) = 1;
            if (killed) pause();
            expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        });
        for (int i = 0; i < 12000 && *static_cast<volatile int*>(job.shared()) == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const pid_t host = host_process(daemon);
        ASSERT_GT(host, 0) << daemon.log();
        if (killed) kill(job.pid(0), SIGKILL);
        EXPECT_EQ(job.wait(), std::vector<int>{killed ? -1 : 0});
        EXPECT_TRUE(goes(host)) << daemon.log();
    }
    // No descriptor is left behind. (The first count may include the connection that found the daemon ready.)
    for (int i = 0; i < 6000 && daemon.descriptors() > descriptors; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(daemon.descriptors(), descriptors);
    EXPECT_EQ(daemon.wait(0), -2);
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.wait(), 0);
}

TEST(KernelHosts, AreNotThereWithNoKernels) {
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path(), {"--no-kernels"}};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h kernel = nullptr;
        expect(offpath_kernel_load(context, OFFPATH_TEST_KERNELS, "test_step", &kernel),
               OFFPATH_ERR_UNSUPPORTED, "load");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_NE(daemon.log().find("--no-kernels"), std::string::npos);
    EXPECT_EQ(host_process(daemon), -1);
}

// root may attach to a user's daemon, and gets no kernels there. Our own client would not even attach.
TEST(KernelHosts, AreForTheDaemonsOwnUserOnly) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user than the daemon";
    constexpr uid_t nobody = 65534;
    const pid_t looks = fork();
    if (looks == 0) _exit(setuid(nobody) == 0 && access(OFFPATHD, X_OK) == 0 ? 0 : 1);
    int reaches = 0;
    waitpid(looks, &reaches, 0);
    if (reaches != 0) GTEST_SKIP() << "other users cannot reach " << OFFPATHD;
    TemporaryDirectory directory;
    ASSERT_EQ(chown(directory.path().c_str(), nobody, nobody), 0);
    const std::string socket = control::socket_path(directory.path());
    const pid_t pid = fork();
    if (pid == 0) {
        if (setgid(nobody) != 0 || setuid(nobody) != 0) _exit(126);
        execl(OFFPATHD, OFFPATHD, "--dir", directory.path().c_str(), "--log-file", "/dev/null", nullptr);
        _exit(127);
    }
    FileDescriptor connection;
    std::string problem;
    Status status = Status::unavailable;
    for (int i = 0; i < 1000 && status != Status::ok; ++i) {
        status = control::connect_to(socket, connection, problem);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (status == Status::ok) {
        auto line = control::MessageSocket::over_unix(std::move(connection));
        control::Hello hello;
        hello.job_low = 1;
        hello.back_end = control::BackEndRequest::staged;
        EXPECT_EQ(line.send(hello), Status::ok);
        control::Message message;
        std::vector<FileDescriptor> descriptors;
        EXPECT_EQ(line.receive(5000, message, descriptors, problem), Status::ok) << problem;
        EXPECT_TRUE(std::holds_alternative<control::Welcome>(message));
        EXPECT_EQ(line.send(control::LoadKernel{1, OFFPATH_TEST_KERNELS, "test_step"}), Status::ok);
        EXPECT_EQ(line.receive(5000, message, descriptors, problem), Status::ok) << problem;
        const auto* reply = std::get_if<control::KernelReply>(&message);
        ASSERT_NE(reply, nullptr);
        EXPECT_EQ(reply->status, Status::access);
        EXPECT_NE(reply->text.find("65534"), std::string::npos) << reply->text;
    }
    kill(pid, SIGTERM);
    int code = 0;
    waitpid(pid, &code, 0);
    EXPECT_EQ(status, Status::ok) << problem << ", daemon's code " << code;
}

}  // namespace
}  // namespace offpath::test
