// The event queue, cores and links, each against times that one can work out by hand.
#include "sim/servers/core.h"
#include "sim/servers/link.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace offpath::sim {
namespace {

// Notes when each numbered event happens.
struct Notes {
    explicit Notes(EventQueue& its_queue) : queue(its_queue) {}
    EventQueue& queue;
    std::map<std::uint64_t, Time> times;
    std::vector<std::uint64_t> order;
    static void note(void* self, std::uint64_t number) {
        auto& notes = *static_cast<Notes*>(self);
        notes.times[number] = notes.queue.now();
        notes.order.push_back(number);
    }
};

void run(EventQueue& queue) {
    while (queue.step()) {
    }
}

TEST(EventQueue, EventsHappenByTimeThenByOrder) {
    EventQueue queue;
    Notes notes(queue);
    for (const Time time : {50, 10, 30, 10, 50, 20})
        queue.at(time, &Notes::note, &notes, time);
    run(queue);
    EXPECT_EQ(queue.now(), 50u);
    EXPECT_TRUE(std::is_sorted(notes.order.begin(), notes.order.end()));

    EventQueue same;
    Notes in_order(same);
    for (std::uint64_t i = 0; i < 100; ++i)
        same.at(7, &Notes::note, &in_order, i);
    run(same);
    for (std::uint64_t i = 0; i < 100; ++i)
        EXPECT_EQ(in_order.order[i], i);
}

TEST(EventQueue, ThePastIsNow) {
    EventQueue queue;
    Notes notes(queue);
    queue.at(
        100,
        [](void* self, std::uint64_t) {
            auto& its = *static_cast<Notes*>(self);
            its.queue.at(5, &Notes::note, self, 1);
        },
        &notes);
    run(queue);
    EXPECT_EQ(notes.times[1], 100u);
}

TEST(SimLink, ABucketLetsBytesPassAtOnceAfterAPause) {
    EventQueue queue;
    Notes notes(queue);
    Link link(queue, 1e9, 0, Sharing::fifo, 1000);  // a byte takes a nanosecond; the bucket, 1 us
    constexpr Time us = 1'000'000;
    queue.at(10 * us, &Notes::note, &notes, 0);
    run(queue);
    EXPECT_EQ(link.pass(1000, queue.now()).tail, 10 * us);  // the full bucket
    EXPECT_EQ(link.pass(500, queue.now()).tail, 10 * us + us / 2);
    queue.at(11 * us, &Notes::note, &notes, 0);
    run(queue);
    EXPECT_EQ(link.pass(500, queue.now()).tail, 11 * us);  // half a bucket has come since
    EXPECT_EQ(link.pass(100, queue.now()).tail, 11 * us + us / 10);
}

TEST(SimCore, TakingTheCoreFromAnotherProcessIsNoticed) {
    EventQueue queue;
    Core core(queue);
    const int first = 0, second = 0;
    EXPECT_TRUE(core.taken_by(&first));
    EXPECT_FALSE(core.taken_by(&first));
    EXPECT_TRUE(core.taken_by(&second));
    EXPECT_TRUE(core.taken_by(&first));
}

TEST(SimCore, JobsShareTheCore) {
    EventQueue queue;
    Core core(queue);
    Notes notes(queue);
    core.compute(100, &Notes::note, &notes, 1);
    core.compute(300, &Notes::note, &notes, 2);
    run(queue);
    EXPECT_EQ(notes.times[1], 200u);  // half the core each
    EXPECT_EQ(notes.times[2], 400u);  // then alone
    EXPECT_EQ(core.busy(), 400u);
}

TEST(SimCore, StepsGoFirstAndDelayJobs) {
    EventQueue queue;
    Core core(queue);
    Notes notes(queue);
    core.compute(100, &Notes::note, &notes, 1);
    EXPECT_EQ(core.step(30), 30u);
    EXPECT_EQ(core.step(20), 50u);  // one after the other
    run(queue);
    EXPECT_EQ(notes.times[1], 150u);
}

TEST(SimCore, ARankThatPollsTakesItsShareUntilItStops) {
    EventQueue queue;
    Core core(queue);
    Notes notes(queue);
    struct Poller {
        Core& core;
        Core::JobId job;
    } poller{core, core.poll()};
    core.compute(100, &Notes::note, &notes, 1);
    queue.at(
        60,
        [](void* self, std::uint64_t) {
            static_cast<Poller*>(self)->core.stop(static_cast<Poller*>(self)->job);
        },
        &poller);
    run(queue);
    EXPECT_EQ(notes.times[1], 130u);  // 30 of 60 while both are there, then 70 alone
}

TEST(SimCore, ProcessesThatPollAreInEachOthersWay) {
    EventQueue queue;
    Core core(queue);
    EXPECT_EQ(core.turns_to_come(), 1);
    for (int process = 0; process < 4; ++process)
        core.begin_turns();
    EXPECT_EQ(core.turns_to_come(), 2);  // half of the four
    for (int process = 0; process < 3; ++process)
        core.end_turns();
    EXPECT_EQ(core.turns_to_come(), 1);
}

TEST(SimLink, FifoMessagesWaitForEachOther) {
    EventQueue queue;
    Link link(queue, 1e9, 5 * ns, Sharing::fifo);  // a byte in a nanosecond
    const Link::Passage first = link.pass(100, 0), second = link.pass(50, 0);
    EXPECT_EQ(first.head, 5 * ns);
    EXPECT_EQ(first.tail, 105 * ns);
    EXPECT_EQ(second.head, 105 * ns);
    EXPECT_EQ(second.tail, 155 * ns);
    EXPECT_EQ(link.bytes(), 150u);
}

TEST(SimLink, ASlowerLinkBeforeDelaysTheLastByte) {
    EventQueue queue;
    Link link(queue, 1e9, 0, Sharing::fifo);
    EXPECT_EQ(link.pass(100, 400 * ns).tail, 400 * ns);
    EXPECT_EQ(link.pass(100, 0).tail, 500 * ns);
}

TEST(SimLink, FairMessagesShareTheRate) {
    EventQueue queue;
    Link link(queue, 1e9, 0, Sharing::fair);
    Notes notes(queue);
    link.share(100, &Notes::note, &notes, 1);
    link.share(300, &Notes::note, &notes, 2);
    run(queue);
    EXPECT_NEAR(static_cast<double>(notes.times[1]), 200e3, 5);
    EXPECT_NEAR(static_cast<double>(notes.times[2]), 400e3, 5);
}

}  // namespace
}  // namespace offpath::sim
