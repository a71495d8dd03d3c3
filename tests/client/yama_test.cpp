// Which process a rank allows to read its memory, if the kernel keeps one such process for each
// (yama_standin.h).
#include "harness.h"
#include "yama_standin.h"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

namespace offpath::test {
namespace {

class Yama : public testing::Test {
  protected:
    Yama() { setenv("OFFPATH_TEST_YAMA", notes_.path().c_str(), 1); }
    ~Yama() override { unsetenv("OFFPATH_TEST_YAMA"); }

    TemporaryDirectory directory_, notes_;
};

void expect_cma(offpath_context_h context) {
    offpath_context_info_t info{};
    info.struct_size = sizeof info;
    expect(offpath_context_query(context, &info), OFFPATH_OK, "query");
    require(info.default_back_end == OFFPATH_BACK_END_CMA, "ordinary memory goes by cma");
}

void exchange(const Rank& me, offpath_context_h context) {
    std::vector<int> out(me.size * 20000, static_cast<int>(me.rank)), in(out.size(), -1);
    offpath_request_h request = nullptr;
    expect(offpath_ialltoall(me.world(context), out.data(), in.data(), 80000, &request), OFFPATH_OK, "start");
    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
    offpath_request_free(request);
    for (std::size_t i = 0; i < in.size(); ++i)
        require(in[i] == static_cast<int>(i / 20000), "data");
}

TEST_F(Yama, WhatTheHostsMpiHasLetInStaysIn) {
    DaemonProcess daemon(directory_.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory_.path(), [](const Rank& me) {
        // Open MPI and UCX make this call in MPI_Init.
        require(prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) == 0, "prctl");
        offpath_context_h context = me.init();
        require(tracer_of(getpid()) == "any", "other ranks are let in: " + tracer_of(getpid()));
        expect_cma(context);
        exchange(me, context);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_F(Yama, TheDaemonIsLetInWhereNobodyIs) {
    DaemonProcess daemon(directory_.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    for (const char* back_end : {"auto", "cma"}) {
        EXPECT_TRUE(all_right(2, directory_.path(), [&](const Rank& me) {
            setenv("OFFPATH_BACK_END", back_end, 1);
            offpath_context_h context = me.init();
            require(tracer_of(getpid()) == std::to_string(daemon.pid()), "the daemon is let in");
            expect_cma(context);
            exchange(me, context);
            expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        }));
    }
}

TEST_F(Yama, NobodyIsLetInWhereNobodyNeedsIt) {
    DaemonProcess daemon(directory_.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory_.path(), [&](const Rank& me) {
        setenv("OFFPATH_BACK_END", "staged", 1);
        offpath_context_h context = me.init();
        require(tracer_of(getpid()).empty(), "nobody is let in");
        exchange(me, context);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
