// What to_goal() writes is read again with the same messages and dependencies; everything else is refused
// with the line that is wrong.
#include "sim/crosscheck/goal_file.h"
#include "schedule/goal.h"
#include "sim/programs/host_algorithms.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace offpath::sim {
namespace {

class GoalFile : public testing::Test {
  protected:
    ~GoalFile() override { std::filesystem::remove(path_); }
    GoalJob read(const std::string& text) {
        std::ofstream(path_) << text;
        return read_goal(path_);
    }
    std::string refusal(const std::string& text) {
        try {
            read(text);
            return "none";
        } catch (const GoalError& error) {
            return std::string(error.what()).substr(path_.size());
        }
    }

  private:
    std::string path_ = testing::TempDir() + "goal." + std::to_string(getpid());
};

TEST_F(GoalFile, HoldsWhatSchedulesSend) {
    std::vector<schedule::Schedule> schedules;
    std::uint64_t sent = 0;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
        schedules.push_back(*build_of_host({.name = "allreduce", .bytes = 40'000}, {rank, 5}));
        sent += schedules.back().bytes_sent();
    }
    const GoalJob job = read(schedule::to_goal(schedules));
    EXPECT_EQ(job.ranks, 5u);
    std::uint64_t found = 0;
    for (const GoalOp& op : job.ops) {
        if (op.kind == GoalKind::calc) continue;
        const GoalOp& other = job.ops.at(op.match);
        EXPECT_EQ(other.rank, op.peer);
        EXPECT_EQ(other.tag, op.tag);
        EXPECT_NE(other.kind, op.kind);
        if (op.kind == GoalKind::send) found += op.amount;
    }
    EXPECT_EQ(found, sent);
}

TEST_F(GoalFile, CountsWhatAnOperationWaitsFor) {
    const GoalJob job =
        read("num_ranks 1\nrank 0 {\na: calc 5\nb: calc 7\nc: calc 0\nc requires a\nc requires b\n}\n");
    ASSERT_EQ(job.ops.size(), 3u);
    EXPECT_EQ(job.ops[1].amount, 7u);
    EXPECT_EQ(job.ops[2].waits_for, 2u);
    EXPECT_EQ(job.ops[0].successors, std::vector<std::uint32_t>{2});
}

TEST_F(GoalFile, RefusesWhatItCannotRead) {
    EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\ncalc many\n}\n"),
              ", line 3: \"many\" is not accepted: a number from 0 to 18446744073709551615 is wanted");
    EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\na requires b\n}\n"),
              ", line 3: no operation before has the label b");
    EXPECT_EQ(refusal("num_ranks 2\nrank 0 {\nsend 8b to 2 tag 0\n}\n"),
              ", line 3: \"2\" is not accepted: a number from 0 to 1 is wanted");
    EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\ncalc 1\n"), ", line 3: the last block is not closed");
    EXPECT_EQ(refusal("num_ranks 2\nrank 0 {\n}\n"), ", line 3: 2 ranks are announced, 1 are there");
    EXPECT_EQ(refusal("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\ncalc 0\n}\n"),
              ": rank 0 sends 8 bytes of tag 3 to rank 1, which receives none");
    EXPECT_EQ(refusal("num_ranks 2\nrank 0 {\ncalc 0\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n"),
              ": rank 1 receives 8 bytes of tag 3 from rank 0, which sends none");
    EXPECT_THROW(read_goal("/does/not/exist"), GoalError);
}

}  // namespace
}  // namespace offpath::sim
