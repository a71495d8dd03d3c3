// offpath_request_wait_for returns when the time is over, and at once when the device is done.
#include "harness.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace offpath::test {
namespace {

TEST(WaitFor, GivesUpInTimeAndWakesAtOnce) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        constexpr std::uint64_t millisecond = 1'000'000;
        offpath_context_h context = me.init();
        offpath_request_h request = nullptr;
        expect(offpath_request_wait_for(nullptr, millisecond), OFFPATH_ERR_INVALID, "null request");
        me.barrier();
        if (me.rank == 1) usleep(400'000);
        const double start = now();
        expect(offpath_ibarrier(me.world(context), &request), OFFPATH_OK, "start");
        if (me.rank == 0) {
            expect(offpath_request_wait_for(request, 0), OFFPATH_IN_PROGRESS, "no time at all");
            expect(offpath_request_wait_for(request, 20 * millisecond), OFFPATH_IN_PROGRESS,
                   "before the peer");
            const double waited = now() - start;
            require(waited > 0.019 && waited < 0.3, "the time was kept");
        }
        expect(offpath_request_wait_for(request, 60'000 * millisecond), OFFPATH_OK, "the peer came");
        require(now() - start < 10, "woken by the device");
        expect(offpath_request_wait_for(request, 0), OFFPATH_OK, "done stays done");
        expect(offpath_request_free(request), OFFPATH_OK, "free");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(), std::vector<int>(2, 0));
}

}  // namespace
}  // namespace offpath::test
