// Which operations leave at once on the short way (ways/short_way.h).
#include "ways/short_way.h"

#include <gtest/gtest.h>

namespace {

using offpath::ways::Batch;
using offpath::ways::most_batch_bytes;
using offpath::ways::most_in_a_batch;

TEST(Batch, FewOperationsLeaveAtOnce) {
    Batch batch;
    for (std::uint32_t i = 0; i < most_in_a_batch; ++i) {
        ++batch.now;
        EXPECT_TRUE(batch.is_few(8));
    }
    ++batch.now;
    EXPECT_FALSE(batch.is_few(8));
}

TEST(Batch, ManyBeforeTheFlushAreExpectedAgain) {
    Batch batch;
    batch.now = most_in_a_batch + 1;
    batch.flushed();
    batch.flushed();  // of nothing: it changes nothing
    ++batch.now;
    EXPECT_FALSE(batch.is_few(8));
    batch.flushed();
    ++batch.now;
    EXPECT_TRUE(batch.is_few(8));
}

TEST(Batch, TogetherTheyStayBelowALimit) {
    Batch batch;
    ++batch.now;
    EXPECT_TRUE(batch.is_few(most_batch_bytes));
    batch.bytes = most_batch_bytes;
    ++batch.now;
    EXPECT_FALSE(batch.is_few(1));
    EXPECT_TRUE(batch.is_few(0));
}

}  // namespace
