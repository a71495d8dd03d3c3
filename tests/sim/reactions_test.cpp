// Messages in a replay: what a program does once a test is successful, and which messages devices move.
#include "sim/profile/reactions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/profile/replay.h"
#include "test_platform.h"

namespace offpath::sim {
namespace {

constexpr std::uint64_t at_sends = 1, at_receives = 2;

TEST(Reactions, AreWhatFollowsTestsBeforeTheLastOne) {
    Reactions reactions;
    reactions.found(at_receives, 9, 3);  // perhaps the next step of the program
    EXPECT_EQ(reactions.calls_after(at_receives), 0u);
    reactions.found(at_receives, 2, 1);
    EXPECT_EQ(reactions.calls_after(at_receives), 1u);
    reactions.found(at_receives, 3, 0);  // the last rank of a chain
    EXPECT_EQ(reactions.calls_after(at_receives), 1u);
    reactions.found(at_receives, 4, 0);
    EXPECT_EQ(reactions.calls_after(at_receives), 0u);
    EXPECT_EQ(reactions.calls_after(at_sends), 0u);
}

TEST(Reactions, AProgramGoesOnIfItEverWaitedAfterTests) {
    Reactions reactions;
    reactions.found(at_receives, 5, 1);
    reactions.waited(at_receives, 0);
    EXPECT_FALSE(reactions.goes_on(at_receives));
    reactions.waited(at_receives, 1);
    EXPECT_TRUE(reactions.goes_on(at_receives));
}

TEST(Reactions, NothingIsLearntAboutUnknownPlaces) {
    Reactions reactions;
    reactions.found(0, 2, 1);
    reactions.waited(0, 9);
    EXPECT_EQ(reactions.calls_after(0), 0u);
    EXPECT_FALSE(reactions.goes_on(0));
}

// A rank of a program that passes a message on along a chain, and computes meanwhile.
class Rank {
  public:
    Rank(std::uint32_t rank, std::uint32_t ranks) {
        profile_.end_s = 1;
        profile_.communicators = {{0, rank, {}}};
        for (std::uint32_t i = 0; i < ranks; ++i)
            profile_.communicators[0].members.push_back(i);
    }
    void receive(std::uint64_t bytes) { post("Irecv", -1, bytes, at_receives); }
    void send(std::uint64_t bytes) { post("Isend", +1, bytes, at_sends); }
    // A wait, or a test that is successful, for the post before this one or an earlier one.
    void complete(const std::string& name, double compute_s, std::uint64_t tests, std::uint64_t ago = 1) {
        ProfiledCall call;
        call.name = name;
        call.list = {ago};
        add(call, compute_s, tests);
    }
    void barrier(double compute_s = 0) {
        ProfiledCall call;
        call.name = "Barrier";
        call.comm = 0;
        add(call, compute_s, 0);
    }
    const RankProfile& profile() const { return profile_; }

  private:
    void post(const char* name, int neighbour, std::uint64_t bytes, std::uint64_t place) {
        ProfiledCall call;
        call.name = name;
        call.comm = call.tag = 0;
        call.peer = static_cast<std::int32_t>(profile_.communicators[0].rank) + neighbour;
        call.bytes = bytes;
        call.place = place;
        call.windows = 1;
        call.window_compute_s = 1;
        add(call, 0, 0);
    }
    void add(const ProfiledCall& call, double compute_s, std::uint64_t tests) {
        profile_.sequence.push_back(
            {false, static_cast<std::uint32_t>(profile_.calls.size()), 1, 1, tests, 0, compute_s, 0, {}});
        profile_.calls.push_back(call);
    }
    RankProfile profile_;
};

constexpr std::uint64_t long_bytes = 4 << 20;
const double transfer_s = static_cast<double>(long_bytes) / test_platform().link_Bps;  // 4.2 ms
constexpr double computed_s = 40e-3;

Cluster cluster_of(std::uint32_t nodes) {
    ClusterShape shape;
    shape.nodes = nodes;
    shape.keeps_libraries = true;
    return {test_platform(), shape};
}

// Three ranks. `known`: the profile shows that the middle one reacts.
double chain_s(bool known) {
    std::vector<Rank> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        ranks.emplace_back(rank, 3);
    if (known) {
        ranks[0].send(long_bytes);
        ranks[0].complete("Wait", 0, 0);
        ranks[1].receive(long_bytes);
        ranks[1].complete("Test", 2 * transfer_s, 1);
        ranks[1].send(long_bytes);
        ranks[1].complete("Wait", 2 * transfer_s, 0);
        ranks[2].receive(long_bytes);
        ranks[2].complete("Wait", 0, 0);
    }
    for (Rank& rank : ranks)
        rank.barrier();
    ranks[0].send(long_bytes);
    ranks[0].complete("Wait", computed_s, 9);
    ranks[1].receive(long_bytes);
    ranks[1].complete("Wait", computed_s, 9);
    ranks[1].send(long_bytes);
    ranks[1].complete("Wait", 0, 0);
    ranks[2].receive(long_bytes);
    ranks[2].complete("Wait", computed_s, 9);
    std::vector<RankProfile> profiles;
    for (const Rank& rank : ranks)
        profiles.push_back(rank.profile());
    Cluster cluster = cluster_of(3);
    return replay(cluster, profiles).time_s;
}

TEST(Chain, AMessageIsPassedOnDuringTheComputation) {
    EXPECT_NEAR(chain_s(false), computed_s + transfer_s, 1e-3);
    const double first_s = 4 * transfer_s;
    EXPECT_NEAR(chain_s(true), first_s + computed_s, 1e-3);
}

// Two ranks. In the profile, a test is successful after a tenth of the transfer. `waited`: the program has
// also waited for such messages.
double early_test_s(bool waited) {
    Rank sender(0, 2), receiver(1, 2);
    if (waited) {
        sender.send(long_bytes);
        sender.complete("Wait", 0, 0);
        receiver.receive(long_bytes);
        receiver.complete("Wait", transfer_s / 10, 1);
    }
    sender.barrier();
    receiver.barrier();
    sender.send(long_bytes);
    sender.complete("Wait", 0, 0);
    receiver.receive(long_bytes);
    receiver.complete("Test", transfer_s / 10, 0);
    receiver.barrier(computed_s);
    sender.barrier();
    Cluster cluster = cluster_of(2);
    return replay(cluster, {sender.profile(), receiver.profile()}).time_s;
}

TEST(Tests, ThatFindNothingLetTheProgramComputeOn) {
    EXPECT_NEAR(early_test_s(true), transfer_s + 0.1 * transfer_s + computed_s, 1e-3);
    // Where it has never waited, it may compute with what it has received.
    EXPECT_NEAR(early_test_s(false), transfer_s + computed_s, 1e-3);
}

TEST(Routes, LongMessagesGoToTheDeviceThoughOthersOfTheirTagAreShort) {
    constexpr std::uint64_t short_bytes = 1 << 10;
    Rank sender(0, 2), receiver(1, 2);
    for (const std::uint64_t bytes : {short_bytes, long_bytes, short_bytes, short_bytes, long_bytes}) {
        sender.send(bytes);
        sender.complete("Wait", 0, 0);
        receiver.receive(bytes);
        receiver.complete("Wait", 0, 0);
    }
    Cluster cluster = cluster_of(2);
    replay(cluster, {sender.profile(), receiver.profile()});
    EXPECT_EQ(cluster.worker_of(1).engine().counters().bytes_received, 2 * long_bytes);
}

}  // namespace
}  // namespace offpath::sim
