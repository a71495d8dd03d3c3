// Refinement of choices at run time: programs that compute or wait, ranks that agree on what was found, and
// the pace of agreements.
#include <gtest/gtest.h>

#include "tuning/cost_model.h"
#include "tuning/pace.h"
#include "tuning_samples.h"

namespace offpath::mpi {
namespace {

// A program on some ranks that computes for `gap_s` between post and wait. The engines have the given costs.
// The ranks meet every `meet_every` calls. There they agree at regular times and whenever one of them wants
// it. `skew`: ranks see different times.
class Program {
  public:
    Program(int ranks, const Table& table, Cost host, Cost device, double gap_s, int meet_every = 5)
        : host_(host), device_(device), gap_s_(gap_s), meet_every_(meet_every) {
        for (int i = 0; i < ranks; ++i)
            ranks_.push_back(
                std::make_unique<Choices>(defaults(), table, TeamShape{4, 2}, Slot::usual_first_trial));
    }

    // Returns how many calls went to the device. All ranks must choose alike at every call.
    int run(int calls, std::uint64_t bytes) {
        int on_device = 0;
        for (int i = 0; i < calls; ++i) {
            const bool device = call(bytes);
            on_device += device ? 1 : 0;
            if (!sums_.empty() && --calls_left_ == 0) take_up();
            if (meet_every_ != 0 && ++made_ % meet_every_ == 0 && sums_.empty()) meet();
        }
        return on_device;
    }

    const Choices& rank(std::size_t i) const { return *ranks_[i]; }
    const Slot& slot() const { return *ranks_[0]->slots().front(); }
    void cost(Cost host, Cost device) {
        host_ = host;
        device_ = device;
    }
    // Rank 0 computes. The others do too unless `only_one`.
    void compute(double gap_s, bool only_one = false) {
        gap_s_ = gap_s;
        only_one_ = only_one;
    }
    void meet_every(int calls) { meet_every_ = calls; }
    // What the ranks agree on is taken up so many calls later.
    void agree_meanwhile(int delay) { delay_ = delay; }
    void without_sizes() { sized_ = false; }
    // Computing takes this many times as long while the device works.
    void slow_down_beside_device(double factor) { slower_ = factor; }

  private:
    bool call(std::uint64_t bytes) {
        bool first = true, device = false;
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            const Choice choice = sized_ ? ranks_[i]->next(Op::ialltoall, Form::nonblocking, bytes)
                                         : ranks_[i]->next_by_parts(Op::ialltoallv, Form::nonblocking);
            EXPECT_TRUE(first || choice.device == device) << "rank " << i << ", call " << made_;
            device = choice.device;
            first = false;
            if (choice.sampled == nullptr) continue;
            const double skew = 1 + 0.3 * static_cast<double>(i);
            const double gap = (device ? slower_ : 1) * (only_one_ && i > 0 ? 0 : gap_s_);
            const double waits = skew * exposed(device ? device_ : host_, gap);
            const auto ns = [](double s) { return static_cast<std::uint64_t>(s * 1e9); };
            elapsed_ns_ += i == 0 ? ns(waits + gap) : 0;
            ranks_[i]->add_sample(*choice.sampled, choice.call, {ns(waits), ns(waits + gap), ns(gap)});
        }
        return device;
    }

    void meet() {
        const bool soon = ranks_[0]->wants_agreement_soon();
        for (const auto& rank : ranks_)
            ASSERT_EQ(rank->wants_agreement_soon(), soon);
        if (!soon && delay_ == 0 && ++meetings_ % 4 != 0) return;
        std::vector<std::uint64_t> sums = ranks_[0]->contribute();
        for (std::size_t i = 1; i < ranks_.size(); ++i) {
            const auto words = ranks_[i]->contribute();
            ASSERT_EQ(words.size(), sums.size()) << "rank " << i << " brings other slots";
            for (std::size_t w = 0; w < sums.size(); ++w)
                sums[w] += words[w];
        }
        sums_ = sums;
        calls_left_ = delay_;
        if (delay_ == 0) take_up();
    }

    void take_up() {
        for (auto& rank : ranks_)
            rank->conclude(sums_, ranks_.size(), elapsed_ns_);
        elapsed_ns_ = 0;
        sums_.clear();
    }

    std::vector<std::unique_ptr<Choices>> ranks_;
    Cost host_, device_;
    double gap_s_, slower_ = 1;
    bool only_one_ = false, sized_ = true;
    std::vector<std::uint64_t> sums_;  // not taken up yet
    int delay_ = 0, calls_left_ = 0;
    int meet_every_;
    int made_ = 0, meetings_ = 0;
    std::uint64_t elapsed_ns_ = 0;
};

const int rank_counts[] = {1, 2, 3, 5, 8};

TEST(Refinement, AProgramThatComputesMovesToTheDevice) {
    const Table none;
    for (const int ranks : rank_counts) {
        Program program(ranks, none, {0.010, 0.0}, {0.012, 0.95}, 0.010);
        program.run(300, 32 * kib);  // below the fixed switch-over, near enough to be tried
        EXPECT_EQ(program.run(100, 32 * kib), 100) << ranks;
    }
}

TEST(Refinement, AProgramThatWaitsAtOnceMovesToTheHost) {
    const Table none;
    for (const int ranks : rank_counts) {
        Program program(ranks, none, {0.010, 0.0}, {0.012, 0.95}, 0.0);
        program.run(300, 128 * kib);
        EXPECT_EQ(program.run(100, 128 * kib), 0) << ranks;
        EXPECT_EQ(program.slot().phase(), Phase::waits);
    }
}

// The device is as good at hiding, but the step takes longer with it.
TEST(Refinement, ATrialIsJudgedByTheCallsBeforeTheAgreementBegan) {
    const Table none;
    for (const int delay : {0, 1, 3, 8, 20}) {
        Program program(3, none, {0.010, 0.5}, {0.012, 0.6}, 0.010);
        program.slow_down_beside_device(2);
        program.agree_meanwhile(delay);
        if (delay > 0) program.meet_every(1);
        program.run(350, 128 * kib);
        EXPECT_EQ(program.run(100, 128 * kib), 0) << delay;
    }
}

TEST(Refinement, WhatHasUnknownSizesIsComparedAsAWhole) {
    const Table none;
    Program program(3, none, {0.010, 0.5}, {0.012, 0.6}, 0.010);
    program.slow_down_beside_device(2);
    program.without_sizes();
    program.run(350, 0);
    EXPECT_EQ(program.run(100, 0), 0);
}

TEST(Refinement, AnAgreementInWhichNoRankHasSeenACallEndTeachesNothing) {
    Slot slot(Op::ialltoall, 128 * kib, Engine::device, {}, 0);
    constexpr std::uint64_t ms = 1'000'000;
    for (int i = 0; i < 20; ++i)
        slot.add(slot.next(), {ms, 3 * ms, 2 * ms});
    (void)slot.conclude(slot.contribute(), 1, 60 * ms);
    (void)slot.next();
    (void)slot.conclude(slot.contribute(), 1, 3 * ms);
    const Slot::Words known = slot.contribute();
    EXPECT_EQ(known[5], 1U) << "what the device costs";
}

TEST(Refinement, AProgramThatBeginsToComputeIsBackOnTheDeviceAtOnce) {
    const Table none;
    for (const int ranks : rank_counts) {
        for (const bool only_one : {false, true}) {
            Program program(ranks, none, {0.010, 0.0}, {0.012, 0.95}, 0.0, 1);
            program.run(300, 128 * kib);
            ASSERT_EQ(program.run(10, 128 * kib), 0) << ranks;
            program.compute(0.010, only_one);
            EXPECT_EQ(program.run(10, 128 * kib), 9) << ranks << " ranks; the first one cannot be known";
        }
    }
}

TEST(Refinement, APhaseOfWaitingEndsWhereNobodyMeets) {
    const Table none;
    Program program(3, none, {0.0001, 0.0}, {0.00012, 0.95}, 0.0, 1);
    program.run(300, 128 * kib);
    ASSERT_EQ(program.run(10, 128 * kib), 0);
    program.compute(0.0001);
    program.meet_every(0);
    EXPECT_GE(program.run(100, 128 * kib), 100 - 16);
}

TEST(Refinement, AProgramThatKeepsChangingLosesEverLess) {
    const Table none;
    Program program(3, none, {0.010, 0.0}, {0.012, 0.95}, 0.0, 3);
    int computing_on_host = 0;
    for (int turn = 0; turn < 100; ++turn) {
        program.compute(0);
        program.run(200, 128 * kib);
        program.compute(0.010);
        computing_on_host += 50 - program.run(50, 128 * kib);
    }
    EXPECT_LE(computing_on_host, 40) << "of 5000, those of trials among them";
}

TEST(Refinement, WhatWasFoundInAPhaseIsKept) {
    const Table none;
    Program program(3, none, {0.010, 0.0}, {0.012, 0.95}, 0.0, 1);
    program.run(300, 128 * kib);
    program.compute(0.010);
    program.run(20, 128 * kib);
    program.compute(0.0);
    EXPECT_LE(program.run(100, 128 * kib), 40) << "32 calls that were only waited for say enough";
}

TEST(Refinement, AProgramThatComputesLongerLaterIsSoonBackOnTheDevice) {
    const Table none;
    Program program(3, none, {0.010, 0.0}, {0.012, 0.95}, 0.0005, 1);
    program.run(300, 128 * kib);
    EXPECT_EQ(program.run(100, 128 * kib), 0) << "its steps are shorter with the host";
    program.compute(0.010);
    program.run(50, 128 * kib);
    EXPECT_EQ(program.run(100, 128 * kib), 100);
}

TEST(Refinement, ADeviceThatTakesTheProgramsCoresIsLeft) {
    const Table none;
    Program program(3, none, {0.010, 0.5}, {0.012, 0.98}, 0.020);
    program.slow_down_beside_device(1.5);
    program.run(100, 128 * kib);
    EXPECT_LE(program.run(100, 128 * kib), 6) << "but for trials";
}

TEST(Refinement, CallsThatAreOnlyWaitedForSayNothingOfComputing) {
    const Table none;
    Program program(3, none, {0.010, 0.0}, {0.025, 0.98}, 0.0, 1);
    for (int turn = 0; turn < 12; ++turn) {
        program.compute(0);
        program.run(230, 128 * kib);
        program.compute(0.025);
        EXPECT_GE(program.run(30, 128 * kib), 29 - 6) << "turn " << turn;
    }
}

TEST(Refinement, TrialsAreFew) {
    const Table none;
    Program program(3, none, {0.010, 0.9}, {0.020, 0.95}, 0.0);
    EXPECT_LE(program.run(1000, 32 * kib), 12) << "calls that tried the device";
    Program hopeless(3, none, {0.010, 0.9}, {0.040, 0.95}, 0.0);
    EXPECT_LE(hopeless.run(1000, 32 * kib), 4) << "calls that tried a device that is far behind";
    Program small(3, none, {0.010, 0.9}, {0.020, 0.95}, 0.0);
    EXPECT_EQ(small.run(1000, 4 * kib), 0) << "far below the switch-over nothing is tried";
    Program short_one(3, none, {0.010, 0.9}, {0.020, 0.95}, 0.0);
    EXPECT_EQ(short_one.run(32, 32 * kib), 0) << "nor in short programs";
    Program hidden(3, none, {0.010, 0.0}, {0.010, 0.98}, 0.010);
    EXPECT_GE(hidden.run(5000, 128 * kib), 5000 - 2 * 5) << "hardly any where all is hidden";
}

TEST(Refinement, WhatTheTableCallsHopelessIsNotTried) {
    const Table table({row(Op::ialltoall, 32 * kib, {0.010, 0.9}, {0.020, 0.1})});
    Program program(3, table, {0.010, 0.9}, {0.020, 0.1}, 0.010);
    EXPECT_EQ(program.run(1000, 32 * kib), 0);
}

TEST(Refinement, ALoadThatComesIsNoticed) {
    const Table none;
    Program program(3, none, {0.010, 0.0}, {0.010, 0.95}, 0.010);
    EXPECT_GT(program.run(600, 128 * kib), 580);
    program.cost({0.010, 0.0}, {0.050, 0.5});
    program.run(3000, 128 * kib);
    EXPECT_LE(program.run(200, 128 * kib), 7);
}

TEST(Refinement, RanksThatSawNothingKeepEverythingAsItIs) {
    const Table none;
    Choices a(defaults(), none, {2, 2}, Slot::usual_first_trial),
        b(defaults(), none, {2, 2}, Slot::usual_first_trial);
    for (int i = 0; i < 10; ++i) {
        const Choice choice = a.next(Op::ialltoall, Form::nonblocking, 128 * kib);
        b.next(Op::ialltoall, Form::nonblocking, 128 * kib);
        if (choice.sampled != nullptr) a.add_sample(*choice.sampled, choice.call, {ms, ms, 0});
    }
    auto sums = a.contribute();
    const auto others = b.contribute();
    ASSERT_EQ(sums.size(), others.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += others[i];
    a.conclude(sums, 2, 10 * ms);
    b.conclude(sums, 2, 10 * ms);
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(a.next(Op::ialltoall, Form::nonblocking, 128 * kib).device);
        EXPECT_TRUE(b.next(Op::ialltoall, Form::nonblocking, 128 * kib).device);
    }
}

TEST(Refinement, MediansTakeNoNoticeOfOneLateCall) {
    Samples samples;
    for (const std::uint64_t each : {3, 1000, 1, 2, 4})
        samples.add({each, 10 * each, 0});
    EXPECT_EQ(samples.median().exposed_ns, 3U);
    EXPECT_EQ(samples.median().elapsed_ns, 30U);
}

// --- the pace of agreements -----------------------------------------------------------------------------

// Ranks may count a call differently. They must agree in the same call all the same.
TEST(Pace, RanksThatCountDifferentlyAgreeInTheSameCall) {
    Pace plain, quiet;
    for (int round = 0; round < 4; ++round) {
        int calls_of_plain = 1, calls_of_quiet = 1;
        while (!plain.due())
            ++calls_of_plain;
        while (quiet.counts_quietly())
            ++calls_of_quiet;
        EXPECT_TRUE(quiet.due());
        EXPECT_EQ(calls_of_plain, calls_of_quiet);
        plain.set(10 * ms, 250 * ms);
        quiet.set(10 * ms, 250 * ms);
    }
}

// The calls that an agreement needs are not part of the time that it is about.
TEST(Pace, AnAgreementMayTakeSeveralCalls) {
    Pace pace;
    while (!pace.due()) {
    }
    pace.begin();
    for (int call = 0; call < 2; ++call) {
        EXPECT_FALSE(pace.counts_quietly());
        EXPECT_TRUE(pace.due());
    }
    pace.set(8 * 20 * ms, 250 * ms);
    int calls = 1;
    while (!pace.due())
        ++calls;
    EXPECT_EQ(calls, 250 / 20);
    pace.begin();
    EXPECT_TRUE(pace.due());
    pace.give_up();
    EXPECT_TRUE(pace.due()) << "the next one begins at once";
}

TEST(Pace, AgreesInEveryCallWhereCallsAreSlow) {
    Pace pace;
    while (!pace.due()) {
    }
    pace.set(8000 * ms, 250 * ms);
    EXPECT_FALSE(pace.counts_quietly());
    EXPECT_TRUE(pace.due());
}

}  // namespace
}  // namespace offpath::mpi
