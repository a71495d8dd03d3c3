#include "device_ranks/pairing.h"

#include <gtest/gtest.h>

namespace offpath::device_ranks {
namespace {

RankFacts said(const std::string& kind, const std::string& node) {
    return {kind, node, -1, "x86_64"};
}

RankFacts running(int program) {
    return {"", "", program, "x86_64"};
}

std::vector<RankFacts> by_program(int hosts, int devices) {
    std::vector<RankFacts> facts(static_cast<std::size_t>(hosts), running(0));
    facts.insert(facts.end(), static_cast<std::size_t>(devices), running(1));
    return facts;
}

using Ranks = std::vector<int>;

// What must hold of every pairing, whatever the shape of the job.
void expect_sound(const Pairing& pairing) {
    ASSERT_EQ(pairing.verdict, Verdict::kPaired) << pairing.problem;
    for (int rank = 0; rank < static_cast<int>(pairing.ranks.size()); ++rank) {
        const RankPlace& place = pairing.ranks[rank];
        const Node& node = pairing.nodes[place.node];
        const Ranks& own = place.is_device ? node.devices : node.hosts;
        EXPECT_EQ(std::count(own.begin(), own.end(), rank), 1);
        EXPECT_FALSE(place.peers.empty());
        EXPECT_TRUE(std::is_sorted(place.peers.begin(), place.peers.end()));
        EXPECT_LT(place.pair, pairing.pairs);
        for (const int peer : place.peers) {
            const RankPlace& other = pairing.ranks[peer];
            EXPECT_NE(other.is_device, place.is_device);
            EXPECT_EQ(other.node, place.node);
            EXPECT_EQ(other.pair, place.pair);
            EXPECT_EQ(std::count(other.peers.begin(), other.peers.end(), rank), 1);
        }
    }
}

TEST(Pairing, GoesByWhatTheLauncherSays) {
    // One program per node and kind, in no particular order.
    const Pairing pairing =
        pair_ranks({said("device", "7"), said("host", "3"), said("host", "7"), said("device", "3")});
    expect_sound(pairing);
    EXPECT_EQ(pairing.hosts, 2);
    EXPECT_EQ(pairing.devices, 2);
    ASSERT_EQ(pairing.nodes.size(), 2u);
    EXPECT_EQ(pairing.nodes[0].hosts, Ranks{1});
    EXPECT_EQ(pairing.nodes[0].devices, Ranks{3});
    EXPECT_EQ(pairing.ranks[0].peers, Ranks{2});
    EXPECT_EQ(pairing.ranks[1].peers, Ranks{3});
}

TEST(Pairing, DealsSeveralHostsToADevice) {
    const Pairing pairing = pair_ranks(by_program(6, 2));
    expect_sound(pairing);
    EXPECT_EQ(pairing.ranks[6].peers, (Ranks{0, 1, 2}));
    EXPECT_EQ(pairing.ranks[7].peers, (Ranks{3, 4, 5}));
    EXPECT_EQ(pairing.nodes.size(), 2u);
}

TEST(Pairing, DealsHostsOfOneNodeToItsSeveralDevices) {
    std::vector<RankFacts> facts(5, said("host", "0"));
    facts.insert(facts.end(), 2, said("device", "0"));
    const Pairing pairing = pair_ranks(facts);
    expect_sound(pairing);
    ASSERT_EQ(pairing.nodes.size(), 1u);
    EXPECT_EQ(pairing.pairs, 2);
    EXPECT_EQ(pairing.ranks[5].peers, (Ranks{0, 1, 2}));
    EXPECT_EQ(pairing.ranks[6].peers, (Ranks{3, 4}));
}

TEST(Pairing, DealsSeveralDevicesToAHost) {
    std::vector<RankFacts> facts(2, said("host", "0"));
    facts.insert(facts.end(), 3, said("device", "0"));
    const Pairing pairing = pair_ranks(facts);
    expect_sound(pairing);
    EXPECT_EQ(pairing.ranks[0].peers, (Ranks{2, 3}));
    EXPECT_EQ(pairing.ranks[1].peers, Ranks{4});
}

TEST(Pairing, IsSoundForEveryShapeThatDividesEvenly) {
    for (int nodes = 1; nodes <= 5; ++nodes)
        for (int each = 1; each <= 7; ++each) {
            expect_sound(pair_ranks(by_program(nodes * each, nodes)));
            expect_sound(pair_ranks(by_program(nodes, nodes * each)));
        }
    for (int hosts = 1; hosts <= 9; ++hosts)
        for (int devices = 1; devices <= 9; ++devices) {
            std::vector<RankFacts> facts(static_cast<std::size_t>(hosts), said("host", "1"));
            facts.insert(facts.end(), static_cast<std::size_t>(devices), said("device", "1"));
            const Pairing pairing = pair_ranks(facts);
            expect_sound(pairing);
            EXPECT_EQ(pairing.pairs, std::min(hosts, devices));
            std::size_t least = 100, most = 0;
            for (const RankPlace& place : pairing.ranks) {
                if (place.is_device != (hosts >= devices)) continue;
                least = std::min(least, place.peers.size());
                most = std::max(most, place.peers.size());
            }
            EXPECT_LE(most - least, 1u) << hosts << " hosts, " << devices << " devices";
        }
}

TEST(Pairing, MixesKindsByProgramWithNodesByIndex) {
    std::vector<RankFacts> facts = {running(0), running(0), running(1), running(1)};
    for (int rank = 0; rank < 4; ++rank)
        facts[rank].node = rank % 2 == 0 ? "0" : "1";
    const Pairing pairing = pair_ranks(facts);
    expect_sound(pairing);
    EXPECT_EQ(pairing.ranks[0].peers, Ranks{2});
    EXPECT_EQ(pairing.ranks[3].peers, Ranks{1});
}

TEST(Pairing, SaysWhenThereIsOneKindOnly) {
    for (const auto& facts : {by_program(4, 0), {said("host", "0")}, {said("", "")}}) {
        const Pairing pairing = pair_ranks(facts);
        EXPECT_EQ(pairing.verdict, Verdict::kOneKind);
        EXPECT_NE(pairing.problem.find("host ranks only"), std::string::npos) << pairing.problem;
    }
    EXPECT_EQ(pair_ranks({said("device", "0")}).verdict, Verdict::kOneKind);
}

void expect_invalid(const std::vector<RankFacts>& facts, const std::string& part) {
    const Pairing pairing = pair_ranks(facts);
    EXPECT_EQ(pairing.verdict, Verdict::kInvalid);
    EXPECT_NE(pairing.problem.find(part), std::string::npos) << pairing.problem;
}

TEST(Pairing, SaysWhatIsUnpaired) {
    expect_invalid({said("host", "0"), said("device", "0"), said("host", "4")},
                   "node index 4 has host ranks but no device");
    expect_invalid({said("host", "0"), said("device", "0"), said("device", "2"), said("device", "5")},
                   "node indexes 2, 5 have device ranks but no host");
    expect_invalid(by_program(3, 2), "3 host ranks and 2 device ranks cannot be dealt out evenly");
}

TEST(Pairing, SaysWhatIsContradictory) {
    expect_invalid({said("host", "0"), said("device", "0"), said("", "0")},
                   "OFFPATH_RANK_KIND is set for some ranks but not for rank 2");
    expect_invalid({said("host", "0"), said("device", "")},
                   "OFFPATH_NODE_INDEX is set for some ranks but not for rank 1");
    expect_invalid({said("host", "0"), said("dpu", "0")},
                   "OFFPATH_RANK_KIND=dpu of rank 1 is not understood: use host or device");
    for (const char* node : {"-1", "1x", " 1", "4294967296", "node0"})
        expect_invalid({said("host", "0"), said("device", node)}, "is not understood: use a whole number");
    expect_invalid({running(0), running(1), running(2)}, "rank 2 runs program 2");
}

TEST(Pairing, NamesOnlySomeOfManyRanks) {
    std::vector<RankFacts> facts(20, said("host", "0"));
    facts.insert(facts.end(), 20, said("", "0"));
    const Pairing pairing = pair_ranks(facts);
    EXPECT_NE(pairing.problem.find("ranks 20, 21, 22, 23, 24, 25, 26, 27, ..."), std::string::npos)
        << pairing.problem;
}

}  // namespace
}  // namespace offpath::device_ranks
