// Ranks of two nodes with remote devices, over real verbs: payloads between memories that the devices import
// go from host to host. The devices have no access to these memories (mapped_memory.cpp), and each says at
// its end how often it copied.
#include "../client/harness.h"
#include "rdma_device.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace offpath::test {
namespace {

struct Copies {
    unsigned long received = 0, direct = 0, once = 0, more = 0;
};

class Hosts : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!offpath::test::has_rdma_device()) GTEST_SKIP() << "skipped: this system has no RDMA device";
        setenv("OFFPATH_TEST_ATTACH", attach, 1);
        one.emplace(directory.path(), std::vector<std::string>{}, "node-one");
        two.emplace(directory.path(), std::vector<std::string>{}, "node-two");
        ASSERT_TRUE(one->ready()) << one->log();
        ASSERT_TRUE(two->ready()) << two->log();
    }
    // Runs the body on two nodes, with the rank's context and team, and returns what the devices have copied.
    Copies run(std::function<void(const Rank&, offpath_context_h, offpath_team_h)> body) {
        Job job(2, directory.path(), [&](const Rank& me) {
            require(become_host(me.rank == 0 ? "node-one" : "node-two"), "host name");
            offpath_context_h context = me.init();
            body(me, context, me.world(context));
            expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        });
        EXPECT_EQ(job.wait(120), zeros(2)) << one->log() << two->log();
        Copies all;
        for (auto* daemon : {&*one, &*two}) {
            daemon->signal(SIGTERM);
            EXPECT_EQ(daemon->wait(), 0);
            const std::string log = daemon->log();
            const auto at = log.find(" bytes sent, ");
            Copies copies;
            EXPECT_TRUE(at != std::string::npos &&
                        std::sscanf(log.c_str() + at,
                                    " bytes sent, %lu received (%lu direct, %lu copied once, %lu more often)",
                                    &copies.received, &copies.direct, &copies.once, &copies.more) == 4)
                << log;
            all.received += copies.received;
            all.direct += copies.direct;
            all.once += copies.once;
            all.more += copies.more;
        }
        return all;
    }
    // What two ranks do that exchange until one of them, or a device, is lost.
    Job::Body exchanging() const;
    char* allocate(offpath_context_h context, std::size_t bytes) const {
        void* memory = nullptr;
        expect(offpath_mem_alloc(context, bytes, &memory), OFFPATH_OK, "alloc");
        offpath_back_end_t found;
        offpath_progress_t progress;
        expect(offpath_mem_query(context, memory, bytes, &found, &progress), OFFPATH_OK, "query");
        require(found == back_end, offpath_back_end_string(found));
        return static_cast<char*>(memory);
    }
    static void end(offpath_request_h request) {
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        expect(offpath_request_free(request), OFFPATH_OK, "free");
    }

    const char* attach = "remote";
    offpath_back_end_t back_end = OFFPATH_BACK_END_XGVMI;
    TemporaryDirectory directory;
    std::optional<DaemonProcess> one, two;
};

// Devices that share the operating system with their ranks, and map memory that these allocate.
class LocalDevices : public Hosts {
  protected:
    LocalDevices() {
        attach = "local";
        back_end = OFFPATH_BACK_END_MAP;
    }
};

char letter(std::uint32_t rank, std::size_t at) {
    return static_cast<char>(rank * 101 + at * 7 + (at >> 9));
}
void fill(char* memory, std::uint32_t rank, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        memory[i] = letter(rank, i);
}
void check(const char* memory, std::uint32_t rank, std::size_t bytes, std::size_t from = 0) {
    for (std::size_t i = 0; i < bytes; ++i)
        require(memory[i] == letter(rank, from + i), "data at " + std::to_string(i));
}

TEST_F(Hosts, MessagesGoFromHostToHost) {
    const std::vector<std::size_t> sizes{8 << 10, 100'000, 1 << 20, (3 << 20) + 5};
    const Copies copies = run([&](const Rank& me, offpath_context_h context, offpath_team_h world) {
        char* const memory = allocate(context, 4 << 20);
        for (const std::size_t bytes : sizes) {
            if (me.rank == 0) fill(memory + 3, 0, bytes);
            offpath_request_h request = nullptr;
            expect(me.rank == 0 ? offpath_send_offload(world, memory + 3, bytes, 1, 0, &request)
                                : offpath_recv_offload(world, memory + 3, bytes, 0, 0, &request),
                   OFFPATH_OK, "start");
            end(request);
            if (me.rank == 1) check(memory + 3, 0, bytes);
        }
        offpath_copies_t copied{};
        expect(offpath_context_copies(context, &copied), OFFPATH_OK, "copies");
        require(copied.once + copied.more == 0 && (copied.direct > 0) == (me.rank == 1), "no copies");
    });
    EXPECT_EQ(copies.direct, std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    EXPECT_EQ(copies.once + copies.more, 0u);
}

TEST_F(Hosts, CollectivesGoFromHostToHost) {
    constexpr std::size_t block = 1 << 20;
    const Copies copies = run([&](const Rank& me, offpath_context_h context, offpath_team_h world) {
        char* const out = allocate(context, 2 * block);
        char* const in = allocate(context, 2 * block);
        for (int round = 0; round < 3; ++round) {
            fill(out, me.rank + 2 * static_cast<std::uint32_t>(round), 2 * block);
            offpath_request_h request = nullptr;
            expect(offpath_ialltoall(world, out, in, block, &request), OFFPATH_OK, "start");
            end(request);
            for (std::uint32_t rank = 0; rank < 2; ++rank)
                check(in + rank * block, rank + 2 * static_cast<std::uint32_t>(round), block,
                      me.rank * block);
        }
    });
    EXPECT_EQ(copies.direct, 6 * block);
    EXPECT_EQ(copies.once + copies.more, 0u);
}

TEST_F(Hosts, PutsAndGetsGoFromHostToHost) {
    constexpr std::size_t bytes = 1 << 20;
    const Copies copies = run([&](const Rank& me, offpath_context_h context, offpath_team_h world) {
        char* const mine = allocate(context, bytes);
        char* const window_memory = allocate(context, bytes);
        offpath_window_h window = nullptr;
        expect(offpath_window_create(world, window_memory, bytes, &window), OFFPATH_OK, "window");
        fill(mine, me.rank, bytes);
        const offpath_place_t there{1 - me.rank, 0, nullptr, 0};
        offpath_request_h request = nullptr;
        expect(offpath_put(window, mine, bytes, &there, &request), OFFPATH_OK, "put");
        end(request);
        expect(offpath_window_flush(window, 1 - me.rank, nullptr), OFFPATH_OK, "flush");
        me.barrier();
        check(window_memory, 1 - me.rank, bytes);
        expect(offpath_get(window, mine, bytes, &there, &request), OFFPATH_OK, "get");
        end(request);
        check(mine, me.rank, bytes);
        me.barrier();
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
    });
    EXPECT_EQ(copies.direct, 4 * bytes);
    EXPECT_EQ(copies.once + copies.more, 0u);
}

// The cards read and write the mapped memory where it is.
TEST_F(LocalDevices, CopyNoMemoryThatTheyMap) {
    constexpr std::size_t bytes = (1 << 20) + 3;
    const Copies copies = run([&](const Rank& me, offpath_context_h context, offpath_team_h world) {
        char* const memory = allocate(context, bytes);
        if (me.rank == 0) fill(memory, 0, bytes);
        offpath_request_h request = nullptr;
        expect(me.rank == 0 ? offpath_send_offload(world, memory, bytes, 1, 0, &request)
                            : offpath_recv_offload(world, memory, bytes, 0, 0, &request),
               OFFPATH_OK, "start");
        end(request);
        if (me.rank == 1) check(memory, 0, bytes);
    });
    EXPECT_EQ(copies.direct + copies.once, bytes);
    EXPECT_LT(copies.once, 64u << 10) << "the rest came with its header";
    EXPECT_EQ(copies.more, 0u);
}

// Sends and receives of 1 MiB between the two ranks until one fails. Counts them in Rank::shared.
offpath_status_t exchange_until_it_fails(const Rank& me, offpath_team_h world, char* memory) {
    auto& count = *static_cast<std::atomic<std::uint32_t>*>(me.shared);
    for (int round = 0;; ++round) {
        offpath_request_h request = nullptr;
        const bool sends = (me.rank + static_cast<std::uint32_t>(round)) % 2 == 0;
        offpath_status_t status =
            sends ? offpath_send_offload(world, memory, 1 << 20, 1 - me.rank, 0, &request)
                  : offpath_recv_offload(world, memory, 1 << 20, 1 - me.rank, 0, &request);
        if (status != OFFPATH_OK) return status;
        status = offpath_request_wait(request);
        expect(offpath_request_free(request), OFFPATH_OK, "free");
        if (status != OFFPATH_OK) return status;
        ++count;
    }
}

Job::Body Hosts::exchanging() const {
    return [this](const Rank& me) {
        require(become_host(me.rank == 0 ? "node-one" : "node-two"), "host name");
        offpath_context_h context = me.init();
        const offpath_status_t status =
            exchange_until_it_fails(me, me.world(context), allocate(context, 1 << 20));
        expect(status, OFFPATH_ERR_PEER_LOST, "the end");
    };
}

bool begins(const Job& job) {
    const auto& count = *static_cast<const std::atomic<std::uint32_t>*>(job.shared());
    for (const double end = now() + 60; now() < end; usleep(10'000))
        if (count > 20) return true;
    return false;
}

// Not with imported memory: UCX 1.13 ends the process if a get of its newer protocols fails (rndv_get.c).
TEST_F(LocalDevices, AKilledDeviceEndsWhatIsOnTheWay) {
    Job job(2, directory.path(), exchanging());
    ASSERT_TRUE(begins(job));
    two->signal(SIGKILL);
    EXPECT_EQ(two->wait(), -1);
    EXPECT_EQ(job.wait(60), zeros(2)) << one->log();
    EXPECT_TRUE(one->running());
}

// Its memory is gone while cards still read and write it.
TEST_F(Hosts, AKilledHostEndsWhatIsOnTheWayAndNothingElse) {
    Job job(2, directory.path(), exchanging());
    ASSERT_TRUE(begins(job));
    kill(job.pid(1), SIGKILL);
    EXPECT_EQ(job.wait(60), (std::vector<int>{0, -1})) << one->log();
    // The devices serve the next job.
    const Copies copies = run([this](const Rank& me, offpath_context_h context, offpath_team_h world) {
        char* const memory = allocate(context, 1 << 20);
        offpath_request_h request = nullptr;
        expect(me.rank == 0 ? offpath_send_offload(world, memory, 1 << 20, 1, 0, &request)
                            : offpath_recv_offload(world, memory, 1 << 20, 0, 0, &request),
               OFFPATH_OK, "start");
        end(request);
    });
    EXPECT_EQ(copies.once + copies.more, 0u);
}

// Ordinary memory of one end costs one copy; of both, two.
TEST_F(Hosts, OrdinaryMemoryIsStagedAtItsEnd) {
    constexpr std::size_t bytes = 1 << 20;
    const Copies copies = run([&](const Rank& me, offpath_context_h context, offpath_team_h world) {
        std::vector<char> ordinary(bytes);
        char* const memory = me.rank == 0 ? ordinary.data() : allocate(context, bytes);
        if (me.rank == 0) fill(memory, 0, bytes);
        offpath_request_h request = nullptr;
        expect(me.rank == 0 ? offpath_send_offload(world, memory, bytes, 1, 0, &request)
                            : offpath_recv_offload(world, memory, bytes, 0, 0, &request),
               OFFPATH_OK, "start");
        end(request);
        if (me.rank == 1) check(memory, 0, bytes);
        expect(me.rank == 0 ? offpath_send_offload(world, ordinary.data(), bytes, 1, 1, &request)
                            : offpath_recv_offload(world, ordinary.data(), bytes, 0, 1, &request),
               OFFPATH_OK, "start");
        end(request);
        if (me.rank == 1) check(ordinary.data(), 0, bytes);
    });
    EXPECT_EQ(copies.direct, 0u);
    EXPECT_EQ(copies.once, bytes);
    EXPECT_EQ(copies.more, bytes);
}

}  // namespace
}  // namespace offpath::test
