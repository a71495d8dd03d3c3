// OFFPATH_TARGET_DEVICES: what is accepted, and what the errors name.
#include "target/program/places.h"

#include <gtest/gtest.h>

namespace offpath::target {
namespace {

TEST(Places, AreListedInOrder) {
    std::vector<Place> places;
    std::string problem;
    ASSERT_EQ(parse_places("/run/offpath/a,10.0.0.2,./b,dpu:7000", "node1", places, problem), Status::ok);
    ASSERT_EQ(places.size(), 4U);
    EXPECT_EQ(places[0].directory, "/run/offpath/a");
    EXPECT_EQ(places[1].address, "10.0.0.2");
    EXPECT_EQ(places[2].directory, "./b");
    EXPECT_EQ(places[3].address, "dpu:7000");
}

TEST(Places, OfOtherNodesAreLeftOut) {
    std::vector<Place> places;
    std::string problem;
    ASSERT_EQ(
        parse_places("node1=10.0.0.2,node2=10.0.0.3,node1=10.0.0.4,/d", "node1.cluster", places, problem),
        Status::ok);
    ASSERT_EQ(places.size(), 3U);
    EXPECT_EQ(places[1].address, "10.0.0.4");
    places.clear();
    EXPECT_EQ(parse_places("node1=10.0.0.2", "node3", places, problem), Status::unavailable);
    EXPECT_NE(problem.find("lists no device for node node3"), std::string::npos) << problem;
}

TEST(Places, ThatMakeNoSenseAreNamed) {
    for (const char* setting : {"/a,,/b", "10.0.0.2:port", "node1="}) {
        std::vector<Place> places;
        std::string problem;
        EXPECT_EQ(parse_places(setting, "node1", places, problem), Status::invalid) << setting;
        EXPECT_NE(problem.find("OFFPATH_TARGET_DEVICES: '"), std::string::npos) << problem;
    }
}

}  // namespace
}  // namespace offpath::target
