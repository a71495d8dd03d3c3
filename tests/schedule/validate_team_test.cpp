#include "contains.h"
#include "schedule/builder.h"
#include "schedule/validate.h"

#include <gtest/gtest.h>

#include <functional>

namespace offpath::schedule {
namespace {

using offpath::testing::contains;

// What validate_team() says about two ranks with one slot of 32 bytes each.
std::string problem_of(const std::function<void(Builder&)>& first,
                       const std::function<void(Builder&)>& second) {
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        Builder builder(rank, 2);
        builder.user_slot(32);
        (rank == 0 ? first : second)(builder);
        schedules.push_back(builder.finish());
    }
    std::string problem;
    const Status status = validate_team(schedules, problem);
    EXPECT_EQ(status, problem.empty() ? Status::ok : Status::invalid);
    return problem;
}

TEST(ValidateTeam, AcceptsAnExchange) {
    EXPECT_EQ(problem_of(
                  [](Builder& b) {
                      b.send(1, 3, {0, 0}, 16);
                      b.recv(1, 3, {0, 16}, 16);
                      b.signal(1, 0);
                      b.depend(2, 1);
                  },
                  [](Builder& b) {
                      b.send(0, 3, {0, 0}, 16);
                      b.recv(0, 3, {0, 16}, 16);
                      b.wait(0, 1);
                  }),
              "");
}

TEST(ValidateTeam, RejectsSchedulesInTheWrongPlace) {
    const std::vector<Schedule> schedules{Schedule(0, 2, {}, {}, {}), Schedule(0, 2, {}, {}, {})};
    std::string problem;
    EXPECT_EQ(validate_team(schedules, problem), Status::invalid);
    EXPECT_EQ(problem, "the schedule at place 1 of 2 is of rank 0 in a team of 2");
    EXPECT_EQ(validate_team(std::span(schedules).first(1), problem), Status::invalid);
}

TEST(ValidateTeam, NamesTheRankWhoseScheduleIsInvalid) {
    EXPECT_TRUE(contains(problem_of([](Builder&) {},
                                    [](Builder& b) {
                                        b.send(0, 0, {0, 32}, 1);
                                    }),
                         "rank 1: op 0 (send to rank 0, tag 0): range [32, 33)"));
}

TEST(ValidateTeam, RejectsMessagesWithoutCounterpart) {
    const auto nothing = [](Builder&) {};
    EXPECT_EQ(problem_of(
                  [](Builder& b) {
                      b.send(1, 3, {0, 0}, 1);
                  },
                  nothing),
              "rank 0: op 0 (send to rank 1, tag 3): rank 1 has no recv for it");
    EXPECT_EQ(problem_of(nothing,
                         [](Builder& b) {
                             b.recv(0, 3, {0, 0}, 1);
                         }),
              "rank 1: op 0 (recv from rank 0, tag 3): rank 0 has no send for it");
    EXPECT_TRUE(contains(problem_of(
                             [](Builder& b) {
                                 b.send(1, 3, {0, 0}, 1);
                             },
                             [](Builder& b) {
                                 b.recv(0, 4, {0, 0}, 1);
                             }),
                         "no recv"));
}

TEST(ValidateTeam, RejectsDifferentSizesAtTheTwoEnds) {
    EXPECT_EQ(problem_of(
                  [](Builder& b) {
                      b.send(1, 3, {0, 0}, 8);
                  },
                  [](Builder& b) {
                      b.recv(0, 3, {0, 0}, 9);
                  }),
              "rank 0: op 0 (send to rank 1, tag 3): sends 8 bytes, rank 1 receives 9");
}

TEST(ValidateTeam, RejectsWaitsForMoreSignalsThanAreSent) {
    EXPECT_EQ(problem_of([](Builder& b) { b.signal(1, 9); }, [](Builder& b) { b.wait(9, 2); }),
              "rank 1: op 0 (wait for signal 9): needs 2 signals, 1 are sent");
    EXPECT_EQ(problem_of([](Builder& b) { b.signal(1, 9); },
                         [](Builder& b) {
                             b.wait(9, 2);
                             b.signal(1, 9);
                         }),
              "");
}

TEST(ValidateTeam, FindsADeadlockOfMessages) {
    const auto receive_first = [](std::uint32_t peer) {
        return [peer](Builder& b) {
            b.recv(peer, 0, {0, 0}, 8);
            b.send(peer, 0, {0, 8}, 8);
            b.depend(1, 0);
        };
    };
    EXPECT_EQ(
        problem_of(receive_first(1), receive_first(0)),
        "deadlock: rank 0 op 0 (recv from rank 1, tag 0) waits for rank 1 op 1 (send to rank 0, tag 0) waits "
        "for rank 1 op 0 (recv from rank 0, tag 0) waits for rank 0 op 1 (send to rank 1, tag 0) waits for "
        "the first");
}

TEST(ValidateTeam, FindsADeadlockOfSendsThatNobodyBuffers) {
    const auto send_first = [](std::uint32_t peer) {
        return [peer](Builder& b) {
            b.send(peer, 0, {0, 8}, 8);
            b.recv(peer, 0, {0, 0}, 8);
            b.depend(1, 0);
        };
    };
    EXPECT_TRUE(contains(problem_of(send_first(1), send_first(0)), "deadlock"));
}

TEST(ValidateTeam, FindsADeadlockOfSignals) {
    const auto wait_first = [](std::uint32_t peer) {
        return [peer](Builder& b) {
            b.wait(0, 1);
            b.signal(peer, 0);
            b.depend(1, 0);
        };
    };
    EXPECT_TRUE(contains(problem_of(wait_first(1), wait_first(0)), "deadlock"));
    // The second signal comes only after the wait for two.
    EXPECT_TRUE(contains(problem_of(
                             [](Builder& b) {
                                 b.signal(1, 0);
                                 b.wait(1, 1);
                                 b.signal(1, 0);
                                 b.depend(2, 1);
                             },
                             [](Builder& b) {
                                 b.wait(0, 2);
                                 b.signal(0, 1);
                                 b.depend(1, 0);
                             }),
                         "deadlock"));
}

}  // namespace
}  // namespace offpath::schedule
