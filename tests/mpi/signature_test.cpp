// Signatures: the file's format, and a second run that starts from what the first one has learned.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tuning/program.h"
#include "tuning/signature.h"
#include "tuning_samples.h"

namespace offpath::mpi {
namespace {

constexpr TeamShape shape{4, 2};

LearnedRow learned_row(std::uint64_t bytes = 128 * kib, std::uint64_t calls = 900) {
    return {Op::ialltoall,
            shape,
            bytes,
            calls,
            {Phase::waits, {Engine::device, Engine::host}, {{{0.001, 0.002}, {0, 0}}}}};
}

Signature signature() {
    return {{"app", "c0ffee", "Open MPI v4.1.4", "a processor, 2 cores", 4, 2}, 3, {learned_row()}};
}

TEST(Program, IsKnownByItsBuildIdAndSize) {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const std::string content = program_content();
    const std::size_t dash = content.find('-');
    ASSERT_NE(dash, std::string::npos) << content;
    EXPECT_EQ(content.substr(dash + 1), std::to_string(bytes.size()));
    std::string id;
    for (std::size_t i = 0; i < dash; i += 2)
        id += static_cast<char>(std::stoi(content.substr(i, 2), nullptr, 16));
    EXPECT_EQ(id.size(), 20U);
    EXPECT_NE(bytes.find(id), std::string::npos) << content;
}

TEST(SignatureFile, WhatIsWrittenIsRead) {
    const Signature read = Signature::parse(signature().to_json("2026-03-01T12:00:00+00:00"));
    EXPECT_EQ(read.key.id(), signature().key.id());
    EXPECT_EQ(read.key.name, "app");
    EXPECT_EQ(read.runs, 3U);
    ASSERT_EQ(read.rows.size(), 1U);
    const LearnedRow& row = read.rows.front();
    EXPECT_EQ(row.op, Op::ialltoall);
    EXPECT_EQ(row.shape, shape);
    EXPECT_EQ(row.bytes, 128 * kib);
    EXPECT_EQ(row.calls, 900U);
    EXPECT_EQ(row.what.phase, Phase::waits);
    EXPECT_EQ(row.what.engines, (std::array{Engine::device, Engine::host}));
    EXPECT_EQ(row.what.seen[0].elapsed_s, 0.002);
    EXPECT_EQ(row.what.seen[1].elapsed_s, 0);
}

TEST(SignatureFile, AFileThatIsCutOffOrWrongIsRefused) {
    const std::string text = signature().to_json("now");
    for (std::size_t i = 0; i + 2 < text.size(); ++i)
        EXPECT_THROW(Signature::parse(text.substr(0, i)), std::invalid_argument) << i;
    const auto with = [&](const std::string& old, const std::string& other) {
        std::string changed = text;
        const std::size_t at = changed.find(old);
        EXPECT_NE(at, std::string::npos) << old;
        return changed.replace(at, old.size(), other);
    };
    for (const auto& [old, other] : {std::pair{"\"offpath_signature\": 1", "\"offpath_signature\": 2"},
                                     {"\"ialltoall\"", "\"ifly\""},
                                     {"\"phase\": \"waits\"", "\"phase\": \"sleeps\""},
                                     {"\"waits\": \"host\"", "\"waits\": 7"},
                                     {"\"bytes\": 131072", "\"bytes\": -1"},
                                     {"\"mpi\"", "\"npi\""},
                                     {"\"ranks\": 4", "\"ranks\": \"4\""},
                                     {"\"learned\": [", "\"learned\": 0, \"x\": ["},
                                     {"0.002", "-0.002"}})
        EXPECT_THROW(Signature::parse(with(old, other)), std::invalid_argument) << other;
}

TEST(SignatureFile, TheKeyTellsProgramsJobsAndMachinesApart) {
    const SignatureKey key = signature().key;
    const auto differs = [&](auto change) {
        SignatureKey other = key;
        change(other);
        return other.id() != key.id();
    };
    EXPECT_TRUE(differs([](SignatureKey& other) { other.content = "decaf"; }));
    EXPECT_TRUE(differs([](SignatureKey& other) { other.mpi = "MPICH"; }));
    EXPECT_TRUE(differs([](SignatureKey& other) { other.platform = "another"; }));
    EXPECT_TRUE(differs([](SignatureKey& other) { other.ranks = 8; }));
    EXPECT_TRUE(differs([](SignatureKey& other) { other.nodes = 1; }));
    EXPECT_FALSE(differs([](SignatureKey& other) { other.name = "copy"; }));
    EXPECT_EQ(key.id().size(), 32U);
}

TEST(SignatureFile, ARowReplacesTheOneForTheSameCalls) {
    std::vector<LearnedRow> rows{learned_row()};
    put(rows, learned_row(130 * kib, 100), true);
    EXPECT_EQ(rows.front().calls, 900U);
    put(rows, learned_row(130 * kib, 100), false);
    EXPECT_EQ(rows.front().calls, 100U);
    put(rows, learned_row(300 * kib), false);
    EXPECT_EQ(rows.size(), 2U);
    EXPECT_EQ(find_row(rows, Op::ialltoall, shape, 140 * kib)->calls, 100U);
    EXPECT_EQ(find_row(rows, Op::ibcast, shape, 140 * kib), nullptr);
    EXPECT_EQ(find_row(rows, Op::ialltoall, {4, 1}, 140 * kib), nullptr);
}

// Calls of a program on one rank, which agrees after every call. Each takes `cost` of its engine, all of it
// waiting, or hidden as far as `gap_s` goes.
class Job {
  public:
    explicit Job(std::span<const LearnedRow> remembered = {})
        : choices_(defaults(), none_, shape, Slot::usual_first_trial, remembered) {}

    // How many of the calls went to the device.
    int calls(int count, Cost host, Cost device, double gap_s = 0) {
        int on_device = 0;
        for (int i = 0; i < count; ++i) {
            const Choice choice = choices_.next(Op::ialltoall, Form::nonblocking, 128 * kib);
            on_device += choice.device ? 1 : 0;
            const double waits = exposed(choice.device ? device : host, gap_s);
            const auto ns = [](double s) { return static_cast<std::uint64_t>(s * 1e9); };
            choices_.add_sample(*choice.sampled, choice.call, {ns(waits), ns(waits + gap_s), ns(gap_s)});
            choices_.conclude(choices_.contribute(), 1, ns(waits + gap_s));
        }
        return on_device;
    }
    std::vector<LearnedRow> learned() const { return choices_.learned(); }

  private:
    const Table none_;
    Choices choices_;
};

constexpr Cost quick{0.001, 0}, slow{0.010, 0.95};

TEST(Signatures, ASecondRunStartsFromWhatTheFirstHasLearned) {
    Job first;
    EXPECT_GT(first.calls(400, quick, slow), 40);
    const std::vector<LearnedRow> rows = first.learned();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows.front().calls, 400U);
    EXPECT_EQ(rows.front().what.phase, Phase::waits);
    Job second(rows);
    EXPECT_EQ(second.calls(500, quick, slow), 0);
    EXPECT_EQ(second.calls(100, quick, slow), 2);  // tried now and then
    EXPECT_EQ(second.learned().front().what.engines, rows.front().what.engines);
}

TEST(Signatures, AShortRunHasLearnedNothing) {
    Job run;
    run.calls(10, quick, slow);
    EXPECT_TRUE(run.learned().empty());
}

TEST(Signatures, AProgramThatComputesNowIsBackOnTheDeviceAtOnce) {
    Job first;
    first.calls(400, quick, slow);
    const std::vector<LearnedRow> rows = first.learned();
    Job second(rows);
    EXPECT_GE(second.calls(100, quick, slow, 0.010), 99);
}

TEST(Signatures, WhatIsNoLongerTrueIsTriedAgainSoon) {
    Job first;
    first.calls(400, quick, slow);
    const std::vector<LearnedRow> rows = first.learned();
    Job second(rows);
    second.calls(40, {0.020, 0}, quick);
    EXPECT_EQ(second.calls(100, {0.020, 0}, quick), 100);
}

}  // namespace
}  // namespace offpath::mpi
