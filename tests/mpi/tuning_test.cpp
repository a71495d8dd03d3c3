// The table that `offpath tune` writes, the cost model, and what a communicator uses.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tuning/cost_model.h"
#include "tuning_samples.h"

namespace offpath::mpi {
namespace {

// --- the table ------------------------------------------------------------------------------------------

const std::string good_row =
    R"({"op": "iallgather", "ranks": 4, "nodes": 2, "bytes": 65536,
        "host": {"pure_s": 0.002, "overlap": 0.1}, "device": {"pure_s": 0.001, "overlap": 0.9}})";

std::string table_of(const std::string& rows) {
    return R"({"offpath_tuning": 1, "measured": {"anything": "else"}, "rows": [)" + rows + "]}";
}

std::string problem_of(const std::string& text) {
    try {
        Table::parse(text);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "no problem";
}

TEST(TuningTable, ReadsWhatTuneWrites) {
    const Table table = Table::parse(table_of(good_row));
    ASSERT_EQ(table.rows().size(), 1U);
    const TableRow& read = table.rows()[0];
    EXPECT_EQ(read.op, Op::iallgather);
    EXPECT_EQ(read.shape, (TeamShape{4, 2}));
    EXPECT_EQ(read.bytes, 64 * kib);
    EXPECT_DOUBLE_EQ(read.host.pure_s, 0.002);
    EXPECT_DOUBLE_EQ(read.device.overlap, 0.9);
}

TEST(TuningTable, SaysWhatIsWrongAndWhatIsAccepted) {
    const auto with = [](const std::string& from, const std::string& to) {
        std::string text = good_row;
        text.replace(text.find(from), from.size(), to);
        return problem_of(table_of(text));
    };
    const struct {
        std::string problem, says;
    } cases[] = {
        {problem_of("{"), "no JSON"},
        {problem_of("[]"), "no object"},
        {problem_of("{}"), "offpath_tuning"},
        {problem_of(R"({"offpath_tuning": 2, "rows": []})"), "reads version 1"},
        {problem_of(R"({"offpath_tuning": 1, "rows": 3})"), "no list"},
        {problem_of(table_of("17")), "row 1 is no object"},
        {with("iallgather", "isnothing"), "accepted are ialltoall,"},
        {with("\"ranks\": 4", "\"ranks\": 1"), "whole numbers from 2"},
        {with("\"nodes\": 2", "\"nodes\": 5"), "whole numbers from 1 to 4"},
        {with("65536", "-1"), "\"bytes\" is -1"},
        {with("65536", "1.5"), "\"bytes\" is 1.5"},
        {with("0.1}", "1.5}"), "numbers from 0 to 1"},
        {with("0.002", "\"fast\""), "\"pure_s\" is \"fast\""},
        {with("\"device\"", "\"devise\""), "has no \"device\""},
        {problem_of(table_of(good_row + "," + good_row)), "twice"},
    };
    for (const auto& [problem, says] : cases)
        EXPECT_NE(problem.find(says), std::string::npos) << problem << "\n  does not say: " << says;
}

TEST(TuningTable, ErrorsOfAFileNameIt) {
    const auto path = std::filesystem::temp_directory_path() / "offpath-tuning-test.json";
    std::ofstream(path) << "{";
    for (const std::string& name : {path.string(), std::string("/nowhere/table.json")}) {
        try {
            Table::read(name);
            ADD_FAILURE() << name << " was read";
        } catch (const std::invalid_argument& error) {
            EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        }
    }
    std::filesystem::remove(path);
}

TEST(TuningTable, TakesTheNearestShapeOfTheSameKind) {
    const Cost cost{0.001, 0};
    const Table table({row(Op::ibcast, 1, cost, cost, {2, 2}), row(Op::ibcast, 1, cost, cost, {8, 4}),
                       row(Op::ibcast, 1, cost, cost, {4, 1})});
    EXPECT_EQ(table.nearest(Op::ibcast, {8, 4})[0].shape, (TeamShape{8, 4}));
    EXPECT_EQ(table.nearest(Op::ibcast, {64, 16})[0].shape, (TeamShape{8, 4}));
    EXPECT_EQ(table.nearest(Op::ibcast, {3, 2})[0].shape, (TeamShape{2, 2}));
    EXPECT_EQ(table.nearest(Op::ibcast, {64, 1})[0].shape, (TeamShape{4, 1}));
    EXPECT_TRUE(table.nearest(Op::ialltoall, {8, 4}).empty());
    const Table between({row(Op::ibcast, 1, cost, cost, {2, 2})});
    EXPECT_TRUE(between.nearest(Op::ibcast, {2, 1}).empty());
}

// --- the cost model -------------------------------------------------------------------------------------

TEST(CostModel, OverlapHidesAsMuchAsTheProgramComputes) {
    const Cost cost{0.010, 0.8};
    EXPECT_DOUBLE_EQ(exposed(cost, 0), 0.010);
    EXPECT_DOUBLE_EQ(exposed(cost, 0.005), 0.006);
    EXPECT_DOUBLE_EQ(exposed(cost, 0.010), 0.002);
    EXPECT_DOUBLE_EQ(exposed(cost, 1), 0.002);
}

TEST(CostModel, TheDevicePaysOnlyWhereNoProgramLoses) {
    EXPECT_TRUE(device_pays({0.010, 0.0}, {0.010, 0.95}));
    EXPECT_TRUE(device_pays({0.010, 0.0}, {0.0101, 0.95})) << "1 % slower for a program that waits at once";
    EXPECT_FALSE(device_pays({0.010, 0.0}, {0.0103, 0.95})) << "3 % slower for a program that waits at once";
    EXPECT_FALSE(device_pays({0.010, 0.9}, {0.010, 0.95})) << "the host hides as much";
    EXPECT_TRUE(device_pays_blocking({0.010, 0.9}, {0.009, 0.0}));
    EXPECT_FALSE(device_pays_blocking({0.010, 0.0}, {0.0098, 0.95}))
        << "overlap is nothing to a blocking call";
}

TEST(CostModel, SwitchesOverWhereItPaysFromThereOn) {
    const Cost host{0.010, 0}, good{0.008, 0.95}, bad{0.020, 0.95};
    const auto rows = [&](std::initializer_list<Cost> devices) {
        std::vector<TableRow> made;
        for (const Cost& device : devices)
            made.push_back(row(Op::ibcast, kib << made.size(), host, device));
        return made;
    };
    EXPECT_EQ(switch_over(rows({bad, good, good}), false), 2 * kib);
    EXPECT_EQ(switch_over(rows({good, bad, good}), false), 4 * kib);
    EXPECT_EQ(switch_over(rows({good, good, good}), true), kib);
    EXPECT_EQ(switch_over(rows({good, good, bad}), false), never);
    EXPECT_EQ(switch_over({}, false), never);
}

TEST(CostModel, CostsBetweenMeasuredSizesAreOnALine) {
    const std::vector<TableRow> rows = {row(Op::ibcast, 100, {1, 0}, {2, 0.5}),
                                        row(Op::ibcast, 300, {3, 1}, {4, 0.7})};
    ASSERT_TRUE(at_size(rows, 200));
    EXPECT_DOUBLE_EQ(at_size(rows, 200)->host.pure_s, 2);
    EXPECT_DOUBLE_EQ(at_size(rows, 200)->device.overlap, 0.6);
    EXPECT_DOUBLE_EQ(at_size(rows, 300)->host.pure_s, 3);
    EXPECT_FALSE(at_size(rows, 99));
    EXPECT_FALSE(at_size(rows, 301));
    EXPECT_FALSE(at_size({}, 1));
}

// --- what a communicator uses ---------------------------------------------------------------------------

TEST(Choices, WithoutATableTheSwitchOversAreFixed) {
    const Table none;
    Choices choices(defaults(), none, {4, 2}, 0);
    EXPECT_TRUE(choices.next(Op::ialltoall, Form::nonblocking, 64 * kib).device);
    const Choice small = choices.next(Op::ialltoall, Form::nonblocking, 64 * kib - 1);
    EXPECT_FALSE(small.device);
    EXPECT_EQ(small.reason, HostReason::small);
    EXPECT_EQ(choices.next(Op::ialltoall, Form::blocking, kib * kib).reason, HostReason::switched_off);
    EXPECT_EQ(choices.calls(), 3U);
    EXPECT_EQ(choices.source(Op::ialltoall), Source::fixed);
}

TEST(Choices, ATableMovesTheSwitchOver) {
    const Table table({row(Op::ialltoall, 4 * kib, {0.001, 0}, {0.001, 0.9}),
                       row(Op::ibcast, kib * kib, {0.001, 0.9}, {0.001, 0.9})});
    Choices choices(defaults(), table, {4, 2}, 0);
    EXPECT_TRUE(choices.next(Op::ialltoall, Form::nonblocking, 4 * kib).device);
    EXPECT_FALSE(choices.next(Op::ialltoall, Form::nonblocking, 4 * kib - 1).device);
    EXPECT_FALSE(choices.next(Op::ibcast, Form::nonblocking, 100 * kib * kib).device);
    EXPECT_EQ(choices.threshold(Op::ialltoallv, Form::nonblocking), 64 * kib) << "not measured: fixed";
    EXPECT_EQ(choices.source(Op::ialltoall), Source::table);
}

TEST(Choices, WhatTheUserGivesIsNotMeasuredAway) {
    setenv("OFFPATH_MIN_BYTES", "1M", 1);
    const Selection given = read_selection();
    unsetenv("OFFPATH_MIN_BYTES");
    const Table table({row(Op::ialltoall, 4 * kib, {0.001, 0}, {0.001, 0.9})});
    Choices choices(given, table, {4, 2}, Slot::usual_first_trial);
    EXPECT_EQ(choices.threshold(Op::ialltoall, Form::nonblocking), kib * kib);
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE(choices.next(Op::ialltoall, Form::nonblocking, 64 * kib).device);
    EXPECT_TRUE(choices.slots().empty());
}

TEST(Choices, BlockingCallsGoWhereTheyWereMeasuredToBeFasterOrAskedFor) {
    const Table table({row(Op::ialltoall, 4 * kib, {0.001, 0}, {0.001, 0.9}),
                       row(Op::ialltoall, 64 * kib, {0.010, 0}, {0.005, 0.9})});
    Choices choices(defaults(), table, {4, 2}, 0);
    EXPECT_FALSE(choices.next(Op::ialltoall, Form::blocking, 4 * kib).device);
    EXPECT_TRUE(choices.next(Op::ialltoall, Form::blocking, 64 * kib).device);
    EXPECT_FALSE(choices.next(Op::ibcast, Form::blocking, kib * kib).device);
    Selection asked = defaults();
    asked.ops = parse_ops("default,alltoall,bcast");
    Choices asked_for(asked, table, {4, 2}, 0);
    EXPECT_TRUE(asked_for.next(Op::ialltoall, Form::blocking, 4 * kib).device);
    EXPECT_TRUE(asked_for.next(Op::ibcast, Form::blocking, kib * kib).device);
}

// A rank may count a small call in either way, so ranks that count differently must choose alike.
TEST(Choices, CallsThatAreSmallAtAGlanceAreTheHosts) {
    const Table none;
    Choices asks(defaults(), none, {4, 2}, 4), glances(defaults(), none, {4, 2}, 4);
    for (Choices* each : {&asks, &glances}) {
        each->switch_at(100, parse_ops("ialltoall"));
        each->switch_at(200, parse_ops("ibcast"));
    }
    int small = 0;
    for (std::uint64_t call = 0; call < 300; ++call) {
        const std::uint64_t bytes = call % 4 == 3 ? 512 * kib : std::uint64_t{1} << (call % 14);
        const Choice asked = asks.next(Op::ibcast, Form::nonblocking, bytes);
        if (glances.counts_as_small(Op::ibcast, bytes)) {
            ++small;
            EXPECT_EQ(asked.reason, HostReason::small) << bytes << " bytes";
            EXPECT_EQ(asked.sampled, nullptr) << bytes << " bytes";
        } else {
            const Choice glanced = glances.next(Op::ibcast, Form::nonblocking, bytes);
            EXPECT_EQ(glanced.reason, asked.reason) << bytes << " bytes";
            EXPECT_EQ(glanced.device, asked.device) << bytes << " bytes";
        }
        EXPECT_EQ(glances.calls(), asks.calls());
    }
    // Most of those below 4 KiB, once no switch is pending.
    EXPECT_GT(small, 50);
    EXPECT_LT(small, 100);
}

TEST(Choices, ASwitchTakesEffectAtItsCall) {
    const Table none;
    Choices choices(defaults(), none, {4, 2}, 0);
    choices.switch_at(2, OpSet{});
    choices.switch_at(4, parse_ops("ibcast"));
    const auto next = [&](Op op) { return choices.next(op, Form::nonblocking, kib * kib).device; };
    EXPECT_TRUE(next(Op::ibcast));
    EXPECT_TRUE(next(Op::ibcast));
    EXPECT_FALSE(next(Op::ibcast));
    EXPECT_FALSE(choices.next_by_parts(Op::ialltoallv, Form::nonblocking).device);
    EXPECT_TRUE(next(Op::ibcast));
    EXPECT_FALSE(next(Op::ialltoall));
}

TEST(Choices, SaysWhatIsNew) {
    const Table none;
    Choices choices(defaults(), none, {4, 2}, 0);
    const auto first = [&](std::uint64_t bytes) {
        return choices.next(Op::ibcast, Form::nonblocking, bytes).first;
    };
    EXPECT_TRUE(first(4096));
    EXPECT_FALSE(first(8191));
    EXPECT_TRUE(first(8192));
    EXPECT_TRUE(choices.next(Op::ibcast, Form::blocking, 8192).reason == HostReason::switched_off);
}

// One operation has two sizes. One of them is tried on the other engine, and the other must stay.
TEST(Choices, WhatHasToStayOnItsEngineIsNotTried) {
    const Table none;
    for (const std::uint64_t bytes : {128 * kib, 512 * kib}) {  // on both sides of the switch-over
        Choices choices(defaults(), none, {4, 2}, 4);
        int moved = 0;
        for (int i = 0; i < 200; ++i) {
            const Choice stays = choices.next(Op::iallreduce, Form::nonblocking, bytes, Engines::same);
            EXPECT_EQ(stays.device, bytes >= 256 * kib);
            EXPECT_EQ(stays.sampled, nullptr);
            const Choice free = choices.next(Op::iallreduce, Form::nonblocking, bytes);
            ASSERT_NE(free.sampled, nullptr);
            moved += free.device != stays.device ? 1 : 0;
            choices.add_sample(*free.sampled, free.call, {ms, 2 * ms, ms});
            choices.conclude(choices.contribute(), 1, ms);
        }
        EXPECT_GT(moved, 0) << bytes;
    }
}

}  // namespace
}  // namespace offpath::mpi
