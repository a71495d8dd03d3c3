// Profiles that nobody's profiler has written.
#include "sim/profile/profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace offpath::sim {
namespace {

class Profile : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    // What is wrong with a profile of one rank with this sequence; nothing: it is read.
    std::string problem(const std::string& sequence, const std::string& occurrence = "0") {
        std::ofstream(folder_ + "/rank-0.json")
            << R"({"format": "offpath-profile", "version": 1, "rank": 0, "ranks": 1, "begin_s": 0, "end_s": 1,)"
            << R"( "compute_at_end_s": 0, "lost": 0, "communicators": [{"occurrence": )" << occurrence
            << R"(, "rank": 0, "members": [0]}], "calls": [{"call": "MPI_Barrier", "comm": 0}], "sequence": [)"
            << sequence << "]}";
        try {
            sequence_ = read_profile(folder_).front().sequence;
        } catch (const ProfileError& error) {
            return error.what();
        }
        return "";
    }
    static std::string nested(unsigned loops) {
        std::string text = "[0, 1, 0.1, 0.01, 0]";
        for (unsigned i = 0; i < loops; ++i)
            text = R"({"times": 2, "body": [)" + text + "]}";
        return text;
    }
    const std::string folder_ =
        testing::TempDir() + "profile-" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::vector<ProfiledNode> sequence_;
};

TEST_F(Profile, LoopsInsideLoopsAreReadUpToALimit) {
    ASSERT_EQ(problem(nested(100)), "");
    ASSERT_EQ(sequence_.size(), 1u);
    EXPECT_TRUE(sequence_[0].loop);
    EXPECT_NE(problem(nested(101)).find("more than 100 loops inside each other"), std::string::npos);
}

TEST_F(Profile, ANumberThatDoesNotFitIsRefused) {
    ASSERT_EQ(problem(nested(0)), "");
    EXPECT_NE(problem(nested(0), "4294967296").find("4294967295 is the most"), std::string::npos);
    EXPECT_NE(problem(nested(0), "1e999").find("not JSON"), std::string::npos);
}

}  // namespace
}  // namespace offpath::sim
