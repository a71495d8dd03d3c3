// Routes of the topologies, and the times of messages on them.
#include "sim/network/network.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace offpath::sim {
namespace {

std::vector<LinkId> route(const std::string& text, std::uint32_t nodes, std::uint32_t from,
                          std::uint32_t to) {
    const Topology topology(parse_topology(text, nodes), nodes);
    std::vector<LinkId> links;
    topology.route(from, to, links);
    for (const LinkId link : links)
        EXPECT_LT(link, topology.links()) << text;
    return links;
}

TEST(SimTopology, RoutesAreAsLongAsTheShapeSays) {
    EXPECT_EQ(route("single", 8, 0, 7).size(), 0u);
    EXPECT_EQ(route("fat-tree:4x2", 16, 0, 3).size(), 0u);   // one leaf
    EXPECT_EQ(route("fat-tree:4x2", 16, 0, 15).size(), 2u);  // up and down
    EXPECT_EQ(route("torus:4x4", 16, 0, 5).size(), 2u);      // one step in each dimension
    EXPECT_EQ(route("torus:4x4", 16, 0, 3).size(), 1u);      // around the end
    EXPECT_EQ(route("torus:8", 8, 0, 4).size(), 4u);
    EXPECT_EQ(route("dragonfly:3x4x2", 24, 0, 1).size(), 0u);  // one router
    EXPECT_EQ(route("dragonfly:3x4x2", 24, 0, 7).size(), 1u);  // one group
    EXPECT_LE(route("dragonfly:3x4x2", 24, 0, 23).size(), 3u);
}

TEST(SimTopology, RoutesOfDifferentPairsUseEachLinkInOneDirection) {
    for (const char* text : {"torus:3x4x2", "dragonfly:3x4x2", "fat-tree:4x3"}) {
        const auto there = route(text, 24, 2, 21), back = route(text, 24, 21, 2);
        std::set<LinkId> both(there.begin(), there.end());
        both.insert(back.begin(), back.end());
        EXPECT_EQ(both.size(), there.size() + back.size()) << text;
    }
}

TEST(SimTopology, SaysWhatIsAccepted) {
    for (const char* text :
         {"ring", "fat-tree", "fat-tree:4", "torus:0x4", "torus:4x-1", "dragonfly:2x2", "torus:"}) {
        try {
            (void)parse_topology(text, 4);
            ADD_FAILURE() << text;
        } catch (const std::invalid_argument& error) {
            EXPECT_NE(std::string(error.what()).find("accepted are single, fat-tree"), std::string::npos)
                << text;
        }
    }
    try {
        (void)parse_topology("torus:2x2", 5);
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "topology \"torus:2x2\" has 4 places for 5 nodes");
    }
}

struct Arrivals {
    EventQueue& queue;
    std::vector<Time> times;
    static void note(void* self, std::uint64_t) {
        auto& arrivals = *static_cast<Arrivals*>(self);
        arrivals.times.push_back(arrivals.queue.now());
    }
};

NetworkFigures simple_figures(Sharing sharing) {
    NetworkFigures figures;
    figures.port_Bps = figures.link_Bps = figures.inside_Bps = 1e9;
    figures.port_latency = 100 * ns;
    figures.link_latency = 10 * ns;
    figures.inside_latency = 20 * ns;
    figures.sharing = sharing;
    return figures;
}

std::vector<Time> arrivals_of(Sharing sharing, const std::string& topology,
                              const std::vector<std::array<std::uint32_t, 2>>& pairs) {
    EventQueue queue;
    Network network(queue, simple_figures(sharing), parse_topology(topology, 8), 8);
    Arrivals arrivals{queue, {}};
    for (const auto& [from, to] : pairs)
        network.send(from, to, 1000, 0, &Arrivals::note, &arrivals, 0);
    while (queue.step()) {
    }
    return arrivals.times;
}

TEST(SimNetwork, AMessageTakesLatencyAndItsBytesOnce) {
    EXPECT_EQ(arrivals_of(Sharing::fifo, "single", {{0, 1}}), std::vector<Time>{1100 * ns});
    EXPECT_EQ(arrivals_of(Sharing::fifo, "torus:8", {{0, 2}}),
              std::vector<Time>{1120 * ns});  // two links more
    EXPECT_EQ(arrivals_of(Sharing::fifo, "single", {{3, 3}}), std::vector<Time>{1020 * ns});
}

TEST(SimNetwork, MessagesToOneNodeShareItsPort) {
    EXPECT_EQ(arrivals_of(Sharing::fifo, "single", {{0, 2}, {1, 2}}),
              (std::vector<Time>{1100 * ns, 2100 * ns}));
    const std::vector<Time> fair = arrivals_of(Sharing::fair, "single", {{0, 2}, {1, 2}});
    ASSERT_EQ(fair.size(), 2u);
    EXPECT_NEAR(static_cast<double>(fair[0]), 2050e3, 60e3);
    EXPECT_NEAR(static_cast<double>(fair[1]), 2050e3, 60e3);
}

// A short message waits for two segments of the flow before it, and not for all of its bytes.
TEST(SimNetwork, FlowsTakeTurnsAtAPort) {
    for (const std::uint64_t segment : {0, 100}) {
        EventQueue queue;
        NetworkFigures figures;
        figures.port_Bps = figures.link_Bps = 1e9;
        figures.inside_Bps = 1e10;
        figures.segment_bytes = segment;
        Network network(queue, figures, parse_topology("single", 3), 3);
        struct Noted {
            EventQueue& queue;
            std::vector<std::pair<std::uint64_t, Time>> arrivals;
        } noted{queue, {}};
        const auto note = [](void* object, std::uint64_t which) {
            auto& into = *static_cast<Noted*>(object);
            into.arrivals.emplace_back(which, into.queue.now());
        };
        network.send(0, 1, 1000, 0, note, &noted, 1, {1});
        network.send(0, 1, 50, 0, note, &noted, 2, {1});
        network.send(0, 2, 50, 0, note, &noted, 3, {2});
        while (queue.step()) {
        }
        ASSERT_EQ(noted.arrivals.size(), 3u);
        if (segment == 0) {
            EXPECT_EQ(noted.arrivals[2], (std::pair<std::uint64_t, Time>{3, 1100 * ns}));
        } else {
            EXPECT_EQ(noted.arrivals[0], (std::pair<std::uint64_t, Time>{3, 250 * ns}));
            EXPECT_EQ(noted.arrivals[1], (std::pair<std::uint64_t, Time>{1, 1050 * ns}));
            EXPECT_EQ(noted.arrivals[2], (std::pair<std::uint64_t, Time>{2, 1100 * ns}));
        }
    }
}

// A turn of 300 bytes: three segments, over the flow's messages, before the other flow has one.
TEST(SimNetwork, AFlowMayHaveLongerTurns) {
    EventQueue queue;
    NetworkFigures figures;
    figures.port_Bps = figures.link_Bps = 1e9;
    figures.inside_Bps = 1e10;
    figures.segment_bytes = 100;
    Network network(queue, figures, parse_topology("single", 3), 3);
    struct Noted {
        EventQueue& queue;
        std::vector<std::pair<std::uint64_t, Time>> arrivals;
    } noted{queue, {}};
    const auto note = [](void* object, std::uint64_t which) {
        auto& into = *static_cast<Noted*>(object);
        into.arrivals.emplace_back(which, into.queue.now());
    };
    network.send(0, 1, 200, 0, note, &noted, 1, {1, 300});
    network.send(0, 1, 200, 0, note, &noted, 2, {1, 300});
    network.send(0, 2, 100, 0, note, &noted, 3, {2});
    while (queue.step()) {
    }
    EXPECT_EQ(noted.arrivals,
              (std::vector<std::pair<std::uint64_t, Time>>{{1, 200 * ns}, {3, 400 * ns}, {2, 500 * ns}}));
}

TEST(SimNetwork, MessagesOfDifferentPairsDoNotDisturbEachOther) {
    EXPECT_EQ(arrivals_of(Sharing::fifo, "single", {{0, 1}, {2, 3}}),
              (std::vector<Time>{1100 * ns, 1100 * ns}));
    // On a ring of switches they share a link.
    const std::vector<Time> shared = arrivals_of(Sharing::fifo, "torus:8", {{0, 2}, {1, 3}});
    EXPECT_GT(shared.back(), 2000 * ns);
}

}  // namespace
}  // namespace offpath::sim
