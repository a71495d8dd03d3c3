// Windows of the C API with real daemons and processes: data, atomicity, locks, and that released memory is
// never written again.
#include "harness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <numeric>
#include <vector>

namespace offpath::test {
namespace {

offpath_place_t at(std::uint32_t target, std::uint64_t offset) {
    return {target, offset, nullptr, 0};
}

void windows_body(const Rank& me) {
    offpath_context_h context = me.init();
    offpath_team_h world = me.world(context);
    constexpr std::size_t bytes = 300000;
    // Memory of both kinds: mapped by the device, and ordinary.
    void* base = nullptr;
    std::vector<std::byte> ordinary;
    if (me.rank % 2 == 0) {
        expect(offpath_mem_alloc(context, bytes, &base), OFFPATH_OK, "alloc");
    } else {
        ordinary.resize(bytes);
        base = ordinary.data();
    }
    offpath_window_h window = nullptr;
    expect(offpath_window_create(world, base, bytes, &window), OFFPATH_OK, "create");

    const std::uint32_t right = (me.rank + 1) % me.size;
    std::vector<std::uint32_t> data(50000), back(50000);
    std::iota(data.begin(), data.end(), me.rank * 1000);
    offpath_place_t place = at(right, 4096);
    expect(offpath_put(window, data.data(), 200000, &place, nullptr), OFFPATH_OK, "put");
    expect(offpath_window_flush(window, right, nullptr), OFFPATH_OK, "flush");
    offpath_request_h request = nullptr;
    expect(offpath_get(window, back.data(), 200000, &place, &request), OFFPATH_OK, "get");
    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
    expect(offpath_request_free(request), OFFPATH_OK, "free");
    require(back == data, "what was put is not what is there");

    // Segments cover every other element of 2000.
    std::vector<offpath_segment_t> segments;
    for (std::uint64_t i = 0; i < 1000; ++i)
        segments.push_back({210000 + i * 8, 4});
    place = {right, 0, segments.data(), 1000};
    expect(offpath_put(window, data.data(), 4000, &place, nullptr), OFFPATH_OK, "put of segments");
    std::fill(back.begin(), back.end(), 0);
    expect(offpath_window_flush(window, OFFPATH_ALL_TARGETS, nullptr), OFFPATH_OK, "flush");
    expect(offpath_get(window, back.data(), 4000, &place, nullptr), OFFPATH_OK, "get of segments");
    expect(offpath_window_flush(window, OFFPATH_ALL_TARGETS, nullptr), OFFPATH_OK, "flush");
    require(std::equal(back.begin(), back.begin() + 1000, data.begin()), "segments");

    // All ranks draw tickets from a counter at rank 0. The tickets differ.
    me.barrier();
    constexpr int draws = 200;
    std::array<std::uint64_t, draws> tickets{};
    const std::uint64_t one = 1;
    place = at(0, 0);
    for (int i = 0; i < draws; ++i)
        expect(offpath_get_accumulate(window, &one, &tickets[static_cast<std::size_t>(i)], 1, OFFPATH_UINT64,
                                      OFFPATH_SUM, &place, nullptr),
               OFFPATH_OK, "get_accumulate");
    expect(offpath_window_flush(window, 0, nullptr), OFFPATH_OK, "flush");
    for (int i = 1; i < draws; ++i)
        require(tickets[static_cast<std::size_t>(i)] > tickets[static_cast<std::size_t>(i - 1)],
                "order of tickets");
    me.barrier();
    std::uint64_t count = 0;
    expect(offpath_get(window, &count, 8, &place, nullptr), OFFPATH_OK, "get");
    expect(offpath_window_flush(window, 0, nullptr), OFFPATH_OK, "flush");
    require(count == std::uint64_t{draws} * me.size, "the sum of all draws");
    me.barrier();

    // A flag follows data behind a fence. A rank that sees the flag also sees the data.
    place = at(right, 4096);
    offpath_place_t flag = at(right, 16);
    auto* const own_flag = reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(base) + 16);
    auto* const own_data = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(base) + 4096);
    expect(offpath_window_fence(window, me.size), OFFPATH_ERR_INVALID, "fence of nobody");
    for (std::uint64_t round = 1; round <= 10; ++round) {
        std::fill(data.begin(), data.end(), static_cast<std::uint32_t>(round));
        expect(offpath_put(window, data.data(), 200000, &place, nullptr), OFFPATH_OK, "put");
        expect(offpath_window_fence(window, round % 2 == 0 ? right : OFFPATH_ALL_TARGETS), OFFPATH_OK,
               "fence");
        expect(offpath_put(window, &round, 8, &flag, nullptr), OFFPATH_OK, "flag");
        const double begin = now();
        while (__atomic_load_n(own_flag, __ATOMIC_ACQUIRE) != round) {
            require(now() - begin < 30, "the flag does not come");
            sched_yield();
        }
        for (std::size_t i = 0; i < 50000; ++i)
            require(own_data[i] == round, "the flag overtook the data");
        expect(offpath_window_flush(window, right, nullptr), OFFPATH_OK, "flush");
        me.barrier();
    }

    // Only its lock protects this counter.
    place = at(0, 8);
    for (int i = 0; i < 20; ++i) {
        std::uint64_t value = 0;
        expect(offpath_window_lock(window, 0, OFFPATH_LOCK_EXCLUSIVE, nullptr), OFFPATH_OK, "lock");
        if (i == 0)
            expect(offpath_window_lock(window, 0, OFFPATH_LOCK_SHARED, nullptr), OFFPATH_ERR_INVALID,
                   "lock twice");
        expect(offpath_get(window, &value, 8, &place, nullptr), OFFPATH_OK, "get");
        expect(offpath_window_flush(window, 0, nullptr), OFFPATH_OK, "flush");
        ++value;
        expect(offpath_put(window, &value, 8, &place, nullptr), OFFPATH_OK, "put");
        expect(offpath_window_flush(window, 0, nullptr), OFFPATH_OK, "flush");
        expect(offpath_window_unlock(window, 0), OFFPATH_OK, "unlock");
    }
    expect(offpath_window_flush(window, 0, nullptr), OFFPATH_OK, "flush of the unlocks");
    me.barrier();
    expect(offpath_get(window, &count, 8, &place, nullptr), OFFPATH_OK, "get");
    expect(offpath_window_flush(window, 0, nullptr), OFFPATH_OK, "flush");
    require(count == std::uint64_t{20} * me.size, "what the lock protects");

    // An operation out of range is an error of the next flush, or of its request. The other operations
    // complete.
    place = at(right, bytes - 3);
    expect(offpath_put(window, &count, 8, &place, nullptr), OFFPATH_OK, "put outside");
    expect(offpath_window_flush(window, right, nullptr), OFFPATH_ERR_ACCESS, "flush after it");
    expect(offpath_put(window, &count, 8, &place, &request), OFFPATH_OK, "put outside");
    expect(offpath_request_wait(request), OFFPATH_ERR_ACCESS, "wait after it");
    offpath_request_free(request);
    expect(offpath_window_flush(window, right, nullptr), OFFPATH_OK, "a flush after a request");
    expect(offpath_window_flush(window, right, nullptr), OFFPATH_OK, "flush");

    // There are more operations than may be outstanding.
    place = at(right, 16);
    for (int i = 0; i < 20000; ++i)
        expect(offpath_put(window, &one, 8, &place, nullptr), OFFPATH_OK, "many puts");
    me.barrier();
    expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
    if (me.rank % 2 == 0) expect(offpath_mem_free(context, base), OFFPATH_OK, "free");
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

TEST(Windows, MoveUpdateLockAndRefuse) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    for (std::uint32_t size : {1u, 2u, 5u})
        EXPECT_TRUE(all_right(size, directory.path(), windows_body)) << size << " ranks\n" << daemon.log();
}

TEST(Windows, SeveralProxiesAndThreads) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--proxies", "2"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(3, directory.path(), windows_body, OFFPATH_THREADS_MULTIPLE)) << daemon.log();
}

TEST(Windows, ACreationThatFailsSomewhereFailsEverywhere) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(3, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        void* base = nullptr;
        expect(offpath_mem_alloc(context, 4096, &base), OFFPATH_OK, "alloc");
        offpath_window_h window = nullptr;
        expect(offpath_window_create(world, me.rank == 1 ? nullptr : base, 4096, &window),
               OFFPATH_ERR_INVALID, "create without memory at rank 1");
        require(window == nullptr, "no window");
        expect(offpath_mem_free(context, base), OFFPATH_OK, "nothing keeps the memory");
        std::uint64_t memory = 0;
        const std::uint64_t data = 7;
        expect(offpath_window_create(world, &memory, 8, &window), OFFPATH_OK, "create");
        const offpath_place_t place = at((me.rank + 1) % me.size, 0);
        expect(offpath_put(window, &data, 8, &place, nullptr), OFFPATH_OK, "put");
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        require(memory == 7, "the next window serves");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

TEST(Windows, ACreationThatARankLeavesLeavesNothingBehind) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        me.barrier();
        if (me.rank == 0) _exit(0);
        void* base = nullptr;
        expect(offpath_mem_alloc(context, 4096, &base), OFFPATH_OK, "alloc");
        offpath_window_h window = nullptr;
        expect(offpath_window_create(world, base, 4096, &window), OFFPATH_ERR_PEER_LOST, "create");
        expect(offpath_mem_free(context, base), OFFPATH_OK, "nothing keeps the memory");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(20), (std::vector<int>{0, 0}));
}

TEST(Windows, ATeamOutlivesItsWindows) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        const std::uint32_t members[] = {1, 0};
        offpath_team_h team = nullptr;
        expect(offpath_team_create(context, members, 2, 5, &team), OFFPATH_OK, "team");
        offpath_window_h window = nullptr;
        expect(offpath_window_create_dynamic(team, &window), OFFPATH_OK, "create");
        expect(offpath_team_destroy(team), OFFPATH_ERR_INVALID, "destroy under a window");
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy of the window");
        expect(offpath_team_destroy(team), OFFPATH_OK, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

// The library may flush a window by itself, because of another window. An error that it finds then is not
// lost.
TEST(Windows, ErrorsAreToldByTheirOwnWindow) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::uint64_t memory[2] = {};
        const std::uint64_t one = 1;
        offpath_window_h wrong = nullptr, right = nullptr;
        expect(offpath_window_create(world, &memory[0], 8, &wrong), OFFPATH_OK, "create");
        expect(offpath_window_create(world, &memory[1], 8, &right), OFFPATH_OK, "create");
        const offpath_place_t outside = at(1 - me.rank, 8), inside = at(1 - me.rank, 0);
        for (const bool by_request : {false, true}) {
            expect(offpath_put(wrong, &one, 8, &outside, nullptr), OFFPATH_OK, "put outside");
            for (int i = 0; i < 20000; ++i)
                expect(offpath_put(right, &one, 8, &inside, nullptr), OFFPATH_OK, "put");
            expect(offpath_window_flush(right, OFFPATH_ALL_TARGETS, nullptr), OFFPATH_OK, "flush");
            for (const offpath_status_t wanted : {OFFPATH_ERR_ACCESS, OFFPATH_OK}) {
                if (by_request) {
                    offpath_request_h request = nullptr;
                    expect(offpath_window_flush(wrong, 1 - me.rank, &request), OFFPATH_OK, "flush");
                    expect(offpath_request_wait(request), wanted, "its end");
                    offpath_request_free(request);
                } else {
                    expect(offpath_window_flush(wrong, 1 - me.rank, nullptr), wanted, "flush");
                }
            }
        }
        expect(offpath_window_destroy(right), OFFPATH_OK, "destroy");
        expect(offpath_window_destroy(wrong), OFFPATH_OK, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

// A flush that is not done yet makes no room, so the device holds a bounded number of operations.
TEST(Windows, FlushesThatAreNotOverDoNotCount) {
    if (remote_mode()) GTEST_SKIP() << "the count does not know how a rank is attached";
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        setenv("OFFPATH_BACK_END", "staged", 1);  // the target's process has to answer for its memory
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::uint64_t memory = 0;
        const std::uint64_t one = 1;
        offpath_window_h window = nullptr;
        expect(offpath_window_create(world, &memory, 8, &window), OFFPATH_OK, "create");
        auto* stopping = static_cast<std::atomic<std::uint32_t>*>(me.shared) + 16;
        if (me.rank == 1) {
            stopping->store(1);
            raise(SIGSTOP);
        } else {
            while (stopping->load() == 0)
                usleep(1000);
            usleep(100'000);
            const offpath_place_t place = at(1, 0);
            std::vector<offpath_request_h> flushes(20);
            for (offpath_request_h& flush : flushes) {
                for (int i = 0; i < 15000; ++i)
                    expect(offpath_put(window, &one, 8, &place, nullptr), OFFPATH_OK, "put");
                expect(offpath_window_flush(window, OFFPATH_ALL_TARGETS, &flush), OFFPATH_OK, "flush");
            }
            for (offpath_request_h flush : flushes) {
                expect(offpath_request_wait(flush), OFFPATH_OK, "wait");
                offpath_request_free(flush);
            }
        }
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        require(memory == me.rank, "the last put");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    usleep(2'000'000);
    kill(job.pid(1), SIGCONT);
    EXPECT_EQ(job.wait(40), (std::vector<int>{0, 0})) << daemon.log();
}

// The memory of a window is unmapped, and other memory mapped at the same address. Late data must not reach
// it.
TEST(Windows, AnOldWindowIsNeverWrittenThrough) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        constexpr std::size_t bytes = 1 << 20;
        const std::vector<std::byte> ones(bytes, std::byte{1});
        for (int round = 0; round < 10; ++round) {
            void* const base =
                mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            offpath_window_h window = nullptr, dynamic = nullptr;
            expect(offpath_window_create(world, base, bytes, &window), OFFPATH_OK, "create");
            expect(offpath_window_create_dynamic(world, &dynamic), OFFPATH_OK, "create_dynamic");
            expect(offpath_window_attach(dynamic, base, bytes), OFFPATH_OK, "attach");
            auto* addresses = static_cast<std::uint64_t*>(me.shared);
            addresses[me.rank] = reinterpret_cast<std::uintptr_t>(base);
            me.barrier();
            offpath_place_t place = at(1 - me.rank, 0);
            expect(offpath_put(window, ones.data(), bytes, &place, nullptr), OFFPATH_OK, "put");
            offpath_place_t far = at(1 - me.rank, addresses[1 - me.rank]);
            // Rank 1 detaches while rank 0's put is on its way. The put arrives whole, in part, or not at
            // all.
            offpath_request_h late = nullptr;
            if (me.rank == 0)
                expect(offpath_put(dynamic, ones.data(), bytes, &far, &late), OFFPATH_OK, "late put");
            expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
            expect(offpath_window_detach(dynamic, base), OFFPATH_OK, "detach");
            munmap(base, bytes);
            void* const again = mmap(base, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            require(again == base, "the same address again");
            if (late != nullptr) {
                const offpath_status_t status = offpath_request_wait(late);
                require(status == OFFPATH_OK || status == OFFPATH_ERR_ACCESS, "the late put's end");
                offpath_request_free(late);
            }
            me.barrier();
            if (me.rank == 1) {
                // Nothing arrives through the old attachment any more.
                const auto* words = static_cast<const std::uint64_t*>(again);
                for (std::size_t i = 0; i < bytes / 8; ++i)
                    require(words[i] == 0, "new memory was written through an old window");
            } else {
                expect(offpath_put(dynamic, ones.data(), bytes, &far, &late), OFFPATH_OK, "put after detach");
                expect(offpath_request_wait(late), OFFPATH_ERR_ACCESS, "its end");
                offpath_request_free(late);
            }
            me.barrier();
            if (me.rank == 1)
                require(*static_cast<const std::uint64_t*>(again) == 0, "written after a detach");
            (void)offpath_window_flush(dynamic, OFFPATH_ALL_TARGETS, nullptr);
            expect(offpath_window_destroy(dynamic), OFFPATH_OK, "destroy");
            munmap(again, bytes);
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

// Attached ranges end with their window. Their memory can then be freed.
TEST(Windows, AttachedMemoryIsFreeAfterTheEnd) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        constexpr std::size_t bytes = 1 << 20;
        offpath_window_h window = nullptr;
        expect(offpath_window_create_dynamic(me.world(context), &window), OFFPATH_OK, "create_dynamic");
        std::array<void*, 2> memory{};
        for (void*& base : memory) {
            expect(offpath_mem_alloc(context, bytes, &base), OFFPATH_OK, "alloc");
            expect(offpath_window_attach(window, base, bytes), OFFPATH_OK, "attach");
        }
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        for (void* base : memory)
            expect(offpath_mem_free(context, base), OFFPATH_OK, "free");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

// After a window's end, its outstanding operations no longer count. A put outside another window is reported
// by that window's flush. The put after it, which would have flushed before, does not report it.
TEST(Windows, PutsIntoAnEndedWindowDoNotCount) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<std::uint64_t> memory(2);
        const std::size_t bytes = memory.size() * sizeof memory[0];
        const std::uint64_t one = 1;
        const offpath_place_t inside = at(1 - me.rank, 0), outside = at(1 - me.rank, bytes);
        offpath_window_h window = nullptr;
        expect(offpath_window_create(world, memory.data(), bytes, &window), OFFPATH_OK, "create");
        for (int i = 0; i < 1 << 14; ++i)
            expect(offpath_put(window, &one, 8, &inside, nullptr), OFFPATH_OK, "one of many puts");
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        expect(offpath_window_create(world, memory.data(), bytes, &window), OFFPATH_OK, "create");
        expect(offpath_put(window, &one, 8, &outside, nullptr), OFFPATH_OK, "put outside");
        expect(offpath_put(window, &one, 8, &inside, nullptr), OFFPATH_OK, "put after it");
        expect(offpath_window_flush(window, OFFPATH_ALL_TARGETS, nullptr), OFFPATH_ERR_ACCESS, "flush");
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

TEST(Windows, AKilledDaemonEndsEverythingWithAnError) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<std::byte> memory(1 << 20), data(1 << 20);
        offpath_window_h window = nullptr;
        expect(offpath_window_create(world, memory.data(), memory.size(), &window), OFFPATH_OK, "create");
        offpath_request_h lock = nullptr;
        expect(offpath_window_lock(window, 0, OFFPATH_LOCK_EXCLUSIVE, &lock), OFFPATH_OK, "lock");
        auto* ready = static_cast<std::atomic<std::uint32_t>*>(me.shared) + 16;
        ready->fetch_add(1);
        // One of the two ranks waits for a lock that it never gets. Then everything fails.
        const offpath_status_t status = offpath_request_wait(lock);
        require(status == OFFPATH_OK || status == OFFPATH_ERR_PEER_LOST, "lock");
        const double begun = now();
        while (now() - begun < 40) {
            offpath_place_t place = at(1 - me.rank, 0);
            if (offpath_put(window, data.data(), data.size(), &place, nullptr) == OFFPATH_ERR_PEER_LOST)
                break;
            if (offpath_window_flush(window, OFFPATH_ALL_TARGETS, nullptr) == OFFPATH_ERR_PEER_LOST) break;
        }
        require(now() - begun < 30, "an error within 30 s");
        require(offpath_window_destroy(window) == OFFPATH_ERR_PEER_LOST, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    auto* ready = static_cast<std::atomic<std::uint32_t>*>(job.shared()) + 16;
    for (const double begun = now(); ready->load() < 2 && now() - begun < 20;)
        ;
    usleep(100'000);
    daemon.signal(SIGKILL);
    EXPECT_EQ(job.wait(40), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace offpath::test
