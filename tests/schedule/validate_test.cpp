#include "schedule/validate.h"
#include "contains.h"
#include "schedule/builder.h"
#include "schedule/wire.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

namespace offpath::schedule {
namespace {

using offpath::testing::contains;

// What validate() says about one rank's schedule in a team of 4; rank 2 has a user slot 0 of 64 bytes and a
// scratch slot 1 of 16.
std::string problem_of(const std::function<void(Builder&)>& fill) {
    Builder builder(2, 4);
    builder.user_slot(64);
    builder.scratch_slot(16);
    fill(builder);
    std::string problem;
    const Status status = validate(builder.finish(), problem);
    EXPECT_EQ(status, problem.empty() ? Status::ok : Status::invalid);
    return problem;
}

std::string problem_of(const Op& op) {
    const Schedule schedule(2, 4, {{SlotKind::user, 64}, {SlotKind::scratch, 16}}, {op}, {});
    std::string problem;
    const Status status = validate(schedule, problem);
    EXPECT_EQ(status, problem.empty() ? Status::ok : Status::invalid);
    return problem;
}

TEST(Validate, AcceptsEveryKindOfOpUpToTheEdges) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.copy({0, 0}, {0, 32}, 32);
                  b.send(3, 7, {0, 60}, 4);
                  b.send(3, 8, {0, 64}, 0);
                  b.recv(3, 7, {1, 12}, 4);
                  b.reduce(DataType::float64, Reduction::maximum, {1, 0}, {0, 48}, 16);
                  b.reduce(DataType::uint8, Reduction::bxor, {0, 0}, {0, 0}, 3);
                  b.signal(0, UINT64_MAX);
                  b.wait(UINT64_MAX, 3);
                  b.compute({5, {std::byte{1}}, {{{0, 0}, 64, Access::inout}, {{0, 64}, 0, Access::out}}});
                  b.compute({6, {}, {}});
              }),
              "");
}

TEST(Validate, AcceptsAnEmptySchedule) {
    std::string problem;
    EXPECT_EQ(validate(Schedule(), problem), Status::ok);
}

TEST(Validate, NamesTheOpAndTheRangeThatLeavesItsSlot) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.signal(0, 0);
                  b.send(3, 7, {0, 60}, 5);
              }),
              "op 1 (send to rank 3, tag 7): range [60, 65) leaves slot 0 of 64 bytes");
}

TEST(Validate, RejectsEveryRangeOutsideItsSlot) {
    const std::vector<std::function<void(Builder&)>> cases{
        [](Builder& b) {
            b.copy({0, 1}, {1, 0}, 64);
        },
        [](Builder& b) {
            b.copy({0, 0}, {1, 1}, 16);
        },
        [](Builder& b) {
            b.send(3, 0, {0, 1}, 64);
        },
        [](Builder& b) {
            b.recv(3, 0, {1, 16}, 1);
        },
        [](Builder& b) {
            b.reduce(DataType::int8, Reduction::sum, {0, 0}, {1, 0}, 17);
        },
        [](Builder& b) {
            b.compute({0, {}, {{{0, 0}, 64}, {{0, 60}, 5}}});
        },
        [](Builder& b) {
            b.send(3, 0, {0, 65}, 0);
        },
    };
    for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_TRUE(contains(problem_of(cases[i]), "leaves slot")) << "case " << i;
}

TEST(Validate, RejectsRangesThatWouldWrapAround) {
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.send(3, 0, {0, UINT64_MAX}, 2);
                         }),
                         "beyond the limit"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.send(3, 0, {0, 2}, UINT64_MAX);
                         }),
                         "beyond the limit"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.recv(3, 0, {0, UINT64_MAX - 3}, 4);
                         }),
                         "beyond the limit"));
}

TEST(Validate, RejectsSlotsThatDoNotExist) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.send(3, 0, {2, 0}, 1);
              }),
              "op 0 (send to rank 3, tag 0): slot 2 does not exist, there are 2");
    EXPECT_TRUE(contains(problem_of([](Builder& b) { b.recv(3, 0, {5, 0}, 0); }), "does not exist"));
}

TEST(Validate, RejectsPeersOutsideTheTeam) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.send(4, 0, {0, 0}, 1);
              }),
              "op 0 (send to rank 4, tag 0): rank 4 is not in the team of 4");
    EXPECT_TRUE(contains(problem_of([](Builder& b) { b.signal(no_peer, 0); }), "not in the team"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) { b.recv(7, 0, {0, 0}, 1); }), "not in the team"));
}

TEST(Validate, RejectsUnknownKinds) {
    for (int kind : {0, 2, 3, 10})
        EXPECT_EQ(problem_of(Op{.kind = static_cast<OpKind>(kind)}),
                  fmt::format("op 0 (unknown): kind {} is unknown", kind));
}

TEST(Validate, RejectsFieldsThatTheKindDoesNotUse) {
    const std::vector<Op> cases{
        {.kind = OpKind::copy, .peer = 1},
        {.kind = OpKind::copy, .tag = 1},
        {.kind = OpKind::copy, .type = DataType::int8},
        {.kind = OpKind::reduce, .peer = 1},
        {.kind = OpKind::send, .reduction = Reduction::sum, .peer = 1},
        {.kind = OpKind::send, .peer = 1, .dst = {0, 1}},
        {.kind = OpKind::recv, .peer = 1, .src = {1, 0}},
        {.kind = OpKind::signal, .peer = 1, .bytes = 1},
        {.kind = OpKind::wait, .peer = 1, .bytes = 1},
        {.kind = OpKind::wait, .src = {0, 1}, .bytes = 1},
    };
    for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_TRUE(contains(problem_of(cases[i]), "does not use")) << "case " << i;
}

TEST(Validate, RejectsCallsThatNoKernelCanBeGiven) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.compute({0, {}, {{{1, 0}, 16}}});
              }),
              "op 0 (compute, call 0): a kernel cannot use slot 1, which is scratch");
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.compute({0, {}, {{{0, 0}, 1, static_cast<Access>(4)}}});
              }),
              "op 0 (compute, call 0): access 4 is not defined");
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.compute({0, {}, {{{7, 0}, 1}}});
                         }),
                         "does not exist"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.compute({0, std::vector<std::byte>(max_call_arguments + 1), {}});
                         }),
                         "4097 bytes of arguments"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.compute({0, {}, std::vector<CallBuffer>(max_call_buffers + 1)});
                         }),
                         "17 buffers"));
    EXPECT_EQ(problem_of(Op{.kind = OpKind::compute, .tag = 1}),
              "op 0 (compute, call 1): call 1 does not exist, there are 0");
}

TEST(Validate, RejectsCallsThatAreNotTheOpsOwn) {
    const auto problem = [](std::vector<Op> ops, std::size_t calls) {
        const Schedule schedule(0, 1, {}, std::move(ops), {}, std::vector<KernelCall>(calls));
        std::string text;
        validate(schedule, text);
        return text;
    };
    const Op first{.kind = OpKind::compute, .tag = 0}, second{.kind = OpKind::compute, .tag = 1};
    EXPECT_EQ(problem({first, second}, 2), "");
    EXPECT_EQ(problem({first, second}, 3), "3 calls of kernels for 2 compute ops");
    EXPECT_EQ(problem({second, first}, 2), "op 0 (compute, call 1): call 0 was due");
    EXPECT_EQ(problem({first, first}, 2), "op 1 (compute, call 0): call 1 was due");
}

TEST(Validate, RejectsReductionsThatAreNotDefined) {
    const auto reduce = [](DataType type, Reduction reduction, std::uint64_t bytes) {
        return problem_of([&](Builder& b) { b.reduce(type, reduction, {1, 0}, {0, 0}, bytes); });
    };
    EXPECT_TRUE(contains(reduce(DataType::none, Reduction::sum, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(static_cast<DataType>(25), Reduction::sum, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::int8, Reduction::none, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::int8, static_cast<Reduction>(13), 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::float32, Reduction::band, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::float32, Reduction::land, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::complex64, Reduction::maximum, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::logical32, Reduction::band, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::int32_int32, Reduction::sum, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::float64, Reduction::minloc, 8), "not defined"));
    EXPECT_TRUE(contains(reduce(DataType::float64_int32, Reduction::minloc, 8), "no whole number"));
    EXPECT_EQ(reduce(DataType::float32_int32, Reduction::maxloc, 8), "");
    EXPECT_EQ(reduce(DataType::logical32, Reduction::lxor, 8), "");
    EXPECT_TRUE(contains(reduce(DataType::int32, Reduction::sum, 6), "no whole number"));
    EXPECT_EQ(reduce(DataType::int32, Reduction::band, 8), "");
}

TEST(Validate, RejectsCopiesOntoThemselves) {
    EXPECT_TRUE(contains(problem_of([](Builder& b) { b.copy({0, 0}, {0, 3}, 4); }), "overlap"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) { b.copy({0, 8}, {0, 8}, 4); }), "overlap"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.reduce(DataType::int8, Reduction::sum, {0, 4}, {0, 2}, 4);
                         }),
                         "overlap"));
    EXPECT_EQ(problem_of([](Builder& b) { b.copy({0, 0}, {0, 4}, 4); }), "");
}

TEST(Validate, RejectsTwoMessagesWithOnePeerAndTag) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.send(3, 7, {0, 0}, 1);
                  b.send(3, 8, {0, 0}, 1);
                  b.send(3, 7, {0, 0}, 1);
              }),
              "op 2 (send to rank 3, tag 7): op 0 has the same peer and tag");
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.recv(3, 7, {0, 0}, 1);
                             b.recv(3, 7, {0, 1}, 1);
                         }),
                         "same peer and tag"));
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.recv(3, 7, {0, 0}, 1);
                  b.recv(1, 7, {0, 1}, 1);
                  b.send(3, 7, {0, 2}, 1);
              }),
              "");
}

TEST(Validate, RejectsCirclesAndNamesThem) {
    EXPECT_EQ(
        problem_of([](Builder& b) {
            b.signal(0, 0);
            b.signal(1, 0);
            b.wait(4, 1);
            b.depend(1, 0);
            b.depend(2, 1);
            b.depend(1, 2);
        }),
        "a circle of dependencies: op 1 (signal 0 of rank 1) waits for op 2 (wait for signal 4) waits for "
        "the first");
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.signal(0, 0);
                             b.depend(0, 0);
                         }),
                         "waits for itself"));
}

TEST(Validate, MatchesTheTrafficOfARankWithItself) {
    EXPECT_EQ(problem_of([](Builder& b) {
                  b.send(2, 0, {0, 0}, 4);
                  b.recv(2, 0, {1, 0}, 4);
              }),
              "");
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.send(2, 0, {0, 0}, 4);
                         }),
                         "rank 2 has no recv for it"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.recv(2, 0, {0, 0}, 4);
                         }),
                         "rank 2 has no send for it"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.send(2, 0, {0, 0}, 4);
                             b.recv(2, 0, {1, 0}, 5);
                         }),
                         "sends 4 bytes, rank 2 receives 5"));
    EXPECT_TRUE(contains(problem_of([](Builder& b) {
                             b.send(2, 0, {0, 0}, 4);
                             b.recv(2, 0, {1, 0}, 4);
                             b.depend(1, 0);
                         }),
                         "circle"));
}

TEST(Validate, RejectsWaitsThatNothingCanEnd) {
    EXPECT_TRUE(contains(problem_of([](Builder& b) { b.wait(0, 0); }), "count of 0"));

    Builder alone(0, 1);
    alone.signal(0, 5);
    alone.wait(5, 2);
    std::string problem;
    EXPECT_EQ(validate(alone.finish(), problem), Status::invalid);
    EXPECT_TRUE(contains(problem, "needs 2 signals, 1 are sent"));
}

TEST(Validate, RejectsAFrameOutOfBounds) {
    const auto problem_with = [](const Schedule& schedule) {
        std::string problem;
        EXPECT_EQ(validate(schedule, problem), Status::invalid);
        return problem;
    };
    EXPECT_TRUE(contains(problem_with(Schedule(0, 0, {}, {}, {})), "team is empty"));
    EXPECT_TRUE(contains(problem_with(Schedule(4, 4, {}, {}, {})), "rank 4 is not in the team of 4"));
    EXPECT_TRUE(contains(problem_with(Schedule(0, 1, {{static_cast<SlotKind>(3), 1}}, {}, {})), "kind 3"));
    EXPECT_TRUE(contains(problem_with(Schedule(0, 1, {{SlotKind::scratch, max_slot_bytes + 1}}, {}, {})),
                         "the limit is"));
    EXPECT_TRUE(
        contains(problem_with(Schedule(0, 1, std::vector<Slot>(max_slots + 1), {}, {})), "slots, the limit"));
    const Op op{.kind = OpKind::signal, .peer = 0};
    EXPECT_TRUE(
        contains(problem_with(Schedule(0, 1, {}, std::vector<Op>(max_ops + 1, op), {})), "ops, the limit"));
}

}  // namespace
}  // namespace offpath::schedule
