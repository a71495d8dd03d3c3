#include "rma/epochs.h"

#include <gtest/gtest.h>

namespace offpath::rma {
namespace {

TEST(Epochs, FlushOfNothingIsOverAtOnce) {
    Epochs epochs;
    Flush flush;
    epochs.flush(flush);
    EXPECT_EQ(flush.left, 0u);
    EXPECT_EQ(flush.status, Status::ok);
}

TEST(Epochs, FlushWaitsForWhatWasStartedBeforeItAndNotForMore) {
    Epochs epochs;
    std::vector<Flush*> over;
    const auto first = epochs.start(), second = epochs.start();
    Flush flush;
    epochs.flush(flush);
    ASSERT_EQ(flush.left, 1u);
    const auto third = epochs.start();
    epochs.end(second, Status::ok, over);
    EXPECT_TRUE(over.empty());
    epochs.end(first, Status::ok, over);
    ASSERT_EQ(over, std::vector<Flush*>{&flush});
    epochs.end(third, Status::ok, over);
    EXPECT_TRUE(epochs.idle());
}

TEST(Epochs, LaterOnesThatEndFirstDoNotEndAFlushEarly) {
    Epochs epochs;
    std::vector<Flush*> over;
    Flush one, two;
    const auto first = epochs.start();
    epochs.flush(one);
    const auto second = epochs.start();
    epochs.flush(two);
    epochs.end(second, Status::ok, over);
    EXPECT_TRUE(over.empty());
    epochs.end(first, Status::access, over);
    EXPECT_EQ(over, (std::vector<Flush*>{&one, &two}));
    EXPECT_EQ(one.status, Status::access);
    EXPECT_EQ(two.status, Status::ok);
}

TEST(Epochs, TheNextFlushGetsTheFirstErrorAndOnlyThatFlush) {
    Epochs epochs;
    std::vector<Flush*> over;
    const auto a = epochs.start(), b = epochs.start();
    epochs.end(b, Status::access, over);
    epochs.end(a, Status::peer_lost, over);
    Flush flush, next;
    epochs.flush(flush);
    EXPECT_EQ(flush.left, 0u);
    EXPECT_EQ(flush.status, Status::access);
    epochs.flush(next);
    EXPECT_EQ(next.status, Status::ok);
}

}  // namespace
}  // namespace offpath::rma
