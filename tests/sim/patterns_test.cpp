// The product's engine in virtual time: right bytes, right times, equal runs, and deadlocks that are
// explained.
#include "sim/programs/measure.h"
#include "test_platform.h"

#include <gtest/gtest.h>
#include <malloc.h>

namespace offpath::sim {
namespace {

ClusterShape shape_of(std::uint32_t nodes, std::uint32_t ranks_per_node, EngineKind engine) {
    ClusterShape shape;
    shape.nodes = nodes;
    shape.ranks_per_node = ranks_per_node;
    shape.engine = engine;
    shape.proxies = 1;
    return shape;
}

struct Outcome {
    Measured measured;
    std::uint64_t events = 0;
    Time end = 0;
};

Outcome outcome_of(const Platform& platform, const ClusterShape& shape, const MeasureSpec& spec) {
    Cluster cluster(platform, shape);
    Job job(cluster);
    Outcome outcome;
    outcome.measured = measure(job, spec);
    outcome.events = cluster.queue().events();
    outcome.end = cluster.queue().now();
    return outcome;
}

MeasureSpec spec_of(const std::string& pattern, std::uint64_t bytes) {
    MeasureSpec spec;
    spec.pattern = pattern;
    spec.bytes = bytes;
    spec.iterations = 1;
    return spec;
}

struct Shape {
    std::uint32_t nodes, ranks_per_node;
};

class SimPatterns : public testing::TestWithParam<const char*> {};

TEST_P(SimPatterns, BringTheRightBytes) {
    for (const Shape ranks : {Shape{1, 1}, Shape{2, 1}, Shape{3, 1}, Shape{5, 1}, Shape{2, 4}}) {
        for (const EngineKind engine : {EngineKind::host, EngineKind::offpath}) {
            for (const HostMemoryKind memory :
                 {HostMemoryKind::map, HostMemoryKind::cma, HostMemoryKind::staged}) {
                for (const Protocol protocol : {Protocol::rdma, Protocol::stream}) {
                    if (engine == EngineKind::host && memory != HostMemoryKind::map) continue;
                    Platform platform = test_platform();
                    platform.memory = memory;
                    platform.protocol = protocol;
                    ClusterShape shape = shape_of(ranks.nodes, ranks.ranks_per_node, engine);
                    shape.moves_data = true;
                    for (const std::uint64_t bytes : {8, 6000, 80'000})
                        EXPECT_TRUE(outcome_of(platform, shape, spec_of(GetParam(), bytes)).measured.right)
                            << bytes << " bytes, " << shape.ranks() << " ranks";
                }
            }
        }
    }
}

TEST_P(SimPatterns, EqualSeedsGiveEqualRuns) {
    MeasureSpec spec = spec_of(GetParam(), 30'000);
    spec.iterations = 3;
    spec.skew_s = 1e-5;
    spec.noise = 0.1;
    ClusterShape shape = shape_of(4, 2, EngineKind::offpath);
    const Outcome first = outcome_of(test_platform(), shape, spec),
                  again = outcome_of(test_platform(), shape, spec);
    EXPECT_EQ(first.events, again.events);
    EXPECT_EQ(first.end, again.end);
    EXPECT_EQ(first.measured.total_s, again.measured.total_s);
    shape.seed = 2;
    EXPECT_NE(first.end, outcome_of(test_platform(), shape, spec).end);
}

INSTANTIATE_TEST_SUITE_P(All, SimPatterns, testing::ValuesIn(pattern_names().begin(), pattern_names().end()),
                         [](const auto& pattern) { return std::string(pattern.param); });

// The fraction of `wanted` by which `is` differs from it.
double off(double is, double wanted) {
    return std::abs(is / wanted - 1);
}

TEST(SimTimes, ALargeExchangeTakesTheTimeOfItsBytes) {
    constexpr std::uint64_t bytes = 16 << 20;
    for (const EngineKind engine : {EngineKind::host, EngineKind::offpath}) {
        // Every rank sends and receives once, in both directions at a time.
        const double ring =
            outcome_of(test_platform(), shape_of(2, 1, engine), spec_of("ring", bytes)).measured.pure_s;
        EXPECT_LT(off(ring, bytes / 1e9), 0.02);
        const double all =
            outcome_of(test_platform(), shape_of(4, 1, engine), spec_of("alltoall", bytes)).measured.pure_s;
        EXPECT_LT(off(all, 3 * bytes / 1e9), 0.05);
    }
}

// Over sockets, two of three libraries send to rank 0 first. What they send meets at its port, and later at
// that of rank 2. The proxies' messages do not meet.
TEST(SimTimes, LibrariesMeetAtAPort) {
    constexpr std::uint64_t bytes = 768 << 10;
    Platform platform = test_platform();
    platform.protocol = Protocol::stream;
    const auto rounds = [&](EngineKind engine) {
        return outcome_of(platform, shape_of(3, 1, engine), spec_of("alltoall", bytes)).measured.pure_s /
               (bytes / 1e9);
    };
    EXPECT_GT(rounds(EngineKind::host), 2.6);
    EXPECT_LT(rounds(EngineKind::host), 3.2);
    EXPECT_LT(rounds(EngineKind::offpath), 2.3);
}

TEST(SimTimes, ASmallMessageTakesItsLatencies) {
    const double time =
        outcome_of(test_platform(), shape_of(2, 1, EngineKind::offpath), spec_of("ring", 8)).measured.pure_s;
    EXPECT_GT(time, 1e-6);  // the wire alone
    EXPECT_LT(time, 4e-6);
}

TEST(SimTimes, ADeviceHidesWhatALibraryDoesNot) {
    const MeasureSpec spec = spec_of("alltoall", 1 << 20);
    const Measured host = outcome_of(test_platform(), shape_of(4, 1, EngineKind::host), spec).measured;
    const Measured offpath = outcome_of(test_platform(), shape_of(4, 1, EngineKind::offpath), spec).measured;
    EXPECT_LT(host.overlap_percent, 35);  // what is on the way when the library is left, arrives
    EXPECT_GT(offpath.overlap_percent, 97);
    EXPECT_LT(off(offpath.pure_s, host.pure_s), 0.2);
}

TEST(SimTimes, WithoutDataTimesAreTheSame) {
    for (const char* pattern : {"alltoall", "allreduce", "ring", "put"}) {
        ClusterShape shape = shape_of(3, 2, EngineKind::offpath);
        const Outcome sizes = outcome_of(test_platform(), shape, spec_of(pattern, 80'000));
        shape.moves_data = true;
        const Outcome data = outcome_of(test_platform(), shape, spec_of(pattern, 80'000));
        EXPECT_EQ(sizes.end, data.end) << pattern;
        EXPECT_EQ(sizes.events, data.events) << pattern;
    }
}

TEST(SimTimes, RanksThatShareACoreComputeInTurns) {
    Platform platform = test_platform();
    platform.host_cores = 1;
    MeasureSpec spec = spec_of("barrier", 0);
    spec.compute_s = 1e-3;
    const Measured own = outcome_of(platform, shape_of(2, 1, EngineKind::offpath), spec).measured;
    const Measured two = outcome_of(platform, shape_of(2, 2, EngineKind::offpath), spec).measured;
    EXPECT_LT(off(own.compute_s, 1e-3), 0.01);
    EXPECT_LT(off(two.compute_s, 2e-3), 0.01);
    platform.shared_cores = true;
    EXPECT_LT(off(outcome_of(platform, shape_of(2, 1, EngineKind::offpath), spec).measured.compute_s, 2e-3),
              0.01);
}

Program receives_without_a_sender(Rank& rank, Step& step) {
    std::vector<Operation> operations = step.operations();
    Request& receive = co_await rank.post(operations[0]);
    if (rank.number() == 0) {
        Request& send = co_await rank.post(operations[1]);
        co_await rank.wait(send);
    }
    co_await rank.wait(receive);
}

TEST(SimDeadlock, SaysWhoWaitsForWhom) {
    Cluster cluster(test_platform(), shape_of(3, 1, EngineKind::offpath));
    Job job(cluster);
    std::vector<std::unique_ptr<Step>> steps;
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        steps.push_back(make_step("ring", job, rank, 100));
    try {
        job.run([&](Rank& rank) { return receives_without_a_sender(rank, *steps[rank.number()]); });
        FAIL() << "no deadlock";
    } catch (const Deadlock& deadlock) {
        const std::string text = deadlock.what();
        EXPECT_NE(text.find("rank 0 waits for a message from rank 2"), std::string::npos) << text;
        EXPECT_NE(text.find("rank 2 waits for a message from rank 1"), std::string::npos) << text;
        EXPECT_EQ(text.find("rank 1 waits"), std::string::npos) << text;
    }
}

TEST(SimPatternsErrors, SayWhatIsWrong) {
    Cluster cluster(test_platform(), shape_of(2, 1, EngineKind::offpath));
    Job job(cluster);
    EXPECT_THROW((void)make_step("alltoal", job, 0, 8), std::invalid_argument);
    EXPECT_THROW((void)make_step("allreduce", job, 0, 9), std::invalid_argument);
    EXPECT_THROW((void)make_step("alltoall", job, 0, 0), std::invalid_argument);
}

// Over TCP a payload travels with its header up to 240 KiB. Beyond that, and with RDMA, it is fetched.
TEST(SimTransport, PushesPayloadsOverAStream) {
    const auto messages = [](Protocol protocol, std::uint64_t bytes) {
        Platform platform = test_platform();
        platform.protocol = protocol;
        Cluster cluster(platform, shape_of(2, 1, EngineKind::offpath));
        Job job(cluster);
        MeasureSpec spec = spec_of("ring", bytes);
        spec.only_alone = true;
        measure(job, spec);
        return cluster.network().messages();
    };
    EXPECT_LT(messages(Protocol::stream, 200 << 10), messages(Protocol::rdma, 200 << 10));
}

// Below 64 KiB an MPI library over TCP sends at once, so its bytes travel while the ranks compute.
TEST(SimLibrary, SmallPayloadsDoNotWaitForTheirReceiver) {
    Platform platform = test_platform();
    platform.protocol = Protocol::stream;
    platform.link_Bps = 1e8;
    const ClusterShape shape = shape_of(2, 1, EngineKind::host);
    for (const char* pattern : {"ring", "alltoall"}) {
        EXPECT_GT(outcome_of(platform, shape, spec_of(pattern, 60 << 10)).measured.overlap_percent, 70)
            << pattern;
        for (const std::uint64_t bytes : {64 << 10, 1 << 20})
            EXPECT_LT(outcome_of(platform, shape, spec_of(pattern, bytes)).measured.overlap_percent, 30)
                << pattern << ", " << bytes;
    }
}

// A long message of a library goes in fragments of 128 KiB, since a socket takes no more at once. The pattern
// runs twice.
TEST(SimLibrary, LongMessagesGoInFragments) {
    Platform platform = test_platform();
    platform.protocol = Protocol::stream;
    const auto messages = [&platform](std::uint64_t bytes) {
        Cluster cluster(platform, shape_of(2, 1, EngineKind::host));
        Job job(cluster);
        MeasureSpec spec = spec_of("ring", bytes);
        spec.only_alone = true;
        measure(job, spec);
        return cluster.network().messages();
    };
    EXPECT_EQ(messages(4 << 20) - messages(2 << 20), 2 * 2 * (2 << 20) / (128 << 10));
}

// How often a pattern of two libraries over sockets crosses a link, one way after the other.
double ways_of(const std::string& pattern, std::uint64_t bytes) {
    Platform platform = test_platform();
    platform.protocol = Protocol::stream;
    platform.link_latency_s = 1e-3;
    MeasureSpec spec = spec_of(pattern, bytes);
    spec.only_alone = true;
    return outcome_of(platform, shape_of(2, 1, EngineKind::host), spec).measured.pure_s /
           platform.link_latency_s;
}

// Its sender asks, and its receiver answers in its call. A short message just goes.
TEST(SimLibrary, LongMessagesOfCollectivesWaitForAnAnswer) {
    EXPECT_NEAR(ways_of("bcast", 60'000), 1, 0.2);
    EXPECT_NEAR(ways_of("bcast", 70'000), 3, 0.3);
}

// The answer to a long get is such a message, too: there and back, and once more for the question about it.
TEST(SimLibrary, LongAnswersToGetsWaitForAnAnswer) {
    EXPECT_NEAR(ways_of("get", 60'000), 2, 0.2);
    EXPECT_NEAR(ways_of("get", 70'000), 4, 0.3);
}

TEST(SimMeasure, ThePatternAloneTakesAsLongWithoutComputations) {
    const ClusterShape shape = shape_of(3, 1, EngineKind::offpath);
    MeasureSpec spec = spec_of("alltoall", 64 << 10);
    const Measured all = outcome_of(test_platform(), shape, spec).measured;
    spec.only_alone = true;
    spec.pause_s = 1e-3;
    const Measured alone = outcome_of(test_platform(), shape, spec).measured;
    EXPECT_NEAR(alone.pure_s, all.pure_s, all.pure_s * 0.05);
    EXPECT_GT(alone.post_s, 0);
    EXPECT_EQ(alone.total_s, 0);
}

TEST(SimMeasure, ProcessesThatShareACoreTakeTurns) {
    Platform platform = test_platform();
    platform.shared_cores = true;
    platform.device_cores = 1;
    const ClusterShape shape = shape_of(4, 1, EngineKind::offpath);
    const double without = outcome_of(platform, shape, spec_of("alltoall", 1 << 10)).measured.pure_s;
    platform.device.switch_s = 1e-5;
    EXPECT_GT(outcome_of(platform, shape, spec_of("alltoall", 1 << 10)).measured.pure_s, without + 3e-5);
}

// A message in a chain of ranks waits for one other rank on the core; among four that wait for theirs, for
// two.
TEST(SimMeasure, LibrariesThatPollOnOneCoreDelayEachOther) {
    Platform platform = test_platform();
    platform.shared_cores = true;
    platform.host_cores = 1;
    const auto cost_of_turns = [&platform](std::uint32_t ranks) {
        const ClusterShape shape = shape_of(ranks, 1, EngineKind::host);
        platform.host.switch_s = 0;
        const double without = outcome_of(platform, shape, spec_of("ring", 1 << 10)).measured.pure_s;
        platform.host.switch_s = 1e-4;
        return (outcome_of(platform, shape, spec_of("ring", 1 << 10)).measured.pure_s - without) / ranks;
    };
    EXPECT_GT(cost_of_turns(8), 1.5 * cost_of_turns(2));
}

// The client copies a rank's own block, so its bytes do not cross the bus.
TEST(SimMemory, ABlockForItselfStaysWithinTheHost) {
    Platform platform = test_platform();
    platform.memory = HostMemoryKind::staged;
    platform.bus_Bps = 1e6;
    const Measured measured =
        outcome_of(platform, shape_of(1, 1, EngineKind::offpath), spec_of("alltoall", 100 << 10)).measured;
    EXPECT_LT(measured.pure_s, 0.01);  // the bus would take a tenth of a second each way
}

// How much longer a barrier takes if a message costs the host a millisecond to send or to receive.
double cost_of_messages(Platform platform, double Platform::Work::*figure) {
    const ClusterShape shape = shape_of(1, 2, EngineKind::offpath);
    const double before = outcome_of(platform, shape, spec_of("barrier", 0)).measured.pure_s;
    platform.host.*figure += 1e-3;
    return outcome_of(platform, shape, spec_of("barrier", 0)).measured.pure_s - before;
}

// A barrier has no payload. Behind a stream, its command and its end are messages all the same.
TEST(SimRemoteDevice, CommandsAndCompletionsAreMessages) {
    Platform platform = test_platform();
    EXPECT_EQ(cost_of_messages(platform, &Platform::Work::send_s), 0);
    platform.memory = HostMemoryKind::staged;
    platform.protocol = Protocol::stream;
    EXPECT_NEAR(cost_of_messages(platform, &Platform::Work::send_s), 1e-3, 1e-6);
    EXPECT_NEAR(cost_of_messages(platform, &Platform::Work::receive_s), 1e-3, 1e-6);
}

// The agents of two ranks that share a core work one after the other.
TEST(SimRemoteDevice, AgentsShareTheCoreOfTheirRanks) {
    Platform platform = test_platform();
    platform.memory = HostMemoryKind::staged;
    platform.protocol = Protocol::stream;
    platform.host_cores = 1;
    EXPECT_NEAR(cost_of_messages(platform, &Platform::Work::receive_s), 2e-3, 3e-5);
}

// Each of p proxies knows the other ones, so what it keeps of one that it exchanges nothing with counts p * p
// times. Of p proxies the cluster takes a + b * p + c * p * p bytes.
TEST(SimScale, AProxyKeepsLittleOfThoseThatItDoesNotTalkTo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers have an allocator of their own";
#endif
    const auto taken = [](std::uint32_t nodes) {
        const std::size_t before = mallinfo2().uordblks;
        ClusterShape shape = shape_of(nodes, 1, EngineKind::offpath);
        // Buffers of pieces would come from the heap or from elsewhere.
        shape.engine_config.chunk_bytes = 4096;
        shape.engine_config.send_bounces = shape.engine_config.recv_bounces = 1;
        const Cluster cluster(test_platform(), shape);
        return static_cast<double>(mallinfo2().uordblks) - static_cast<double>(before);
    };
    constexpr std::uint32_t step = 80;
    const double pair = (taken(3 * step) - 2 * taken(2 * step) + taken(step)) / (2.0 * step * step);
    EXPECT_LT(pair, 320);
}

}  // namespace
}  // namespace offpath::sim
