// offpath_request_wait_for returns when the time is over, or when the device is done.
#include "harness.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>

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
        // Rank 1 comes when rank 0 has waited in vain.
        auto& waited = *static_cast<std::atomic<int>*>(me.shared);
        while (me.rank == 1 && waited == 0)
            usleep(1000);
        const double start = now();
        expect(offpath_ibarrier(me.world(context), &request), OFFPATH_OK, "start");
        if (me.rank == 0) {
            expect(offpath_request_wait_for(request, 0), OFFPATH_IN_PROGRESS, "no time at all");
            expect(offpath_request_wait_for(request, 20 * millisecond), OFFPATH_IN_PROGRESS,
                   "before the peer");
            require(now() - start > 0.019, "the time was kept");
            waited = 1;
        }
        const double woken = now();
        expect(offpath_request_wait_for(request, 120'000 * millisecond), OFFPATH_OK, "the peer came");
        require(now() - woken < 60, "woken by the device");
        expect(offpath_request_wait_for(request, 0), OFFPATH_OK, "done stays done");
        expect(offpath_request_free(request), OFFPATH_OK, "free");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(), std::vector<int>(2, 0));
}

}  // namespace
}  // namespace offpath::test
