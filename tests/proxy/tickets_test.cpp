// For how long a job's secret admits clients.
#include "proxy/tickets.h"

#include <gtest/gtest.h>

namespace offpath::proxy {
namespace {

constexpr std::uint64_t now = 1'800'000'000, good_for = 600;
const engine::JobId ticket_job{1, 2};

class TicketsTest : public ::testing::Test {
  protected:
    bool enters(const engine::JobId& which, std::uint32_t rank, TicketUse& use, std::uint64_t issued = now,
                std::uint64_t at = now) {
        why.clear();
        const Status status = tickets->enter(which, rank, issued, at, use, why);
        EXPECT_EQ(status == Status::ok, why.empty());
        return status == Status::ok;
    }
    bool says(const std::string& words) const { return why.find(words) != std::string::npos; }
    std::shared_ptr<Tickets> tickets = std::make_shared<Tickets>(good_for);
    std::string why;
};

TEST_F(TicketsTest, AreGoodForAWhile) {
    TicketUse use[4];
    EXPECT_TRUE(enters(ticket_job, 0, use[0], now - good_for));
    EXPECT_FALSE(enters(ticket_job, 1, use[1], now - good_for - 1));
    EXPECT_TRUE(says("good for 600 s")) << why;
    EXPECT_TRUE(enters({3, 4}, 1, use[2], now + Tickets::clock_seconds));
    EXPECT_FALSE(enters({5, 6}, 1, use[3], now + Tickets::clock_seconds + 1));
    EXPECT_TRUE(says("clocks")) << why;
}

TEST_F(TicketsTest, EndWithTheirJob) {
    TicketUse again;
    {
        TicketUse first, second;
        EXPECT_TRUE(enters(ticket_job, 0, first));
        EXPECT_TRUE(enters(ticket_job, 1, second));
        EXPECT_FALSE(enters(ticket_job, 1, again)) << "a rank is in once";
        EXPECT_TRUE(says("rank 1")) << why;
        second = TicketUse();
    }
    EXPECT_FALSE(enters(ticket_job, 2, again));
    EXPECT_TRUE(says("has ended")) << why;
    EXPECT_TRUE(enters({3, 4}, 2, again)) << "another job";
}

TEST_F(TicketsTest, AJobLeavesWhileARankIsIn) {
    TicketUse first, third;
    EXPECT_TRUE(enters(ticket_job, 0, first));
    {
        TicketUse second;
        EXPECT_TRUE(enters(ticket_job, 1, second));
    }
    EXPECT_TRUE(enters(ticket_job, 1, third));
}

// More jobs have ended than are remembered. Forgotten ones are not admitted again either.
TEST_F(TicketsTest, ForgottenJobsStayEnded) {
    for (std::uint64_t i = 0; i <= Tickets::max_ended; ++i) {
        TicketUse use;
        ASSERT_TRUE(enters({i, 9}, 0, use, now + i / 1000 - 100));
    }
    TicketUse use;
    EXPECT_FALSE(enters({0, 9}, 0, use, now - 100));
    EXPECT_FALSE(enters({Tickets::max_ended, 9}, 0, use, now + Tickets::max_ended / 1000 - 100));
    EXPECT_TRUE(enters({0, 10}, 0, use, now));
}

}  // namespace
}  // namespace offpath::proxy
