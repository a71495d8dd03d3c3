// The pace of a stream: what it follows from, and that the connections of an epoll set are found.
#include "transport/stream_pace.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace offpath::transport::test {
namespace {

constexpr std::uint64_t gigabit = 125'000'000;
constexpr std::uint64_t look_ns = 4'000'000;
constexpr std::uint32_t rtt_us = 100, standing_us = 8000;

// A connection that is looked at every 4 ms.
struct Connection {
    Pacer pacer;
    StreamSample sample;
    // The network has delivered at this rate since the last look.
    std::uint64_t look(std::uint64_t bytes_per_s, std::uint32_t rtt, bool unsent = true,
                       std::uint64_t ns = look_ns) {
        sample.now_ns += ns;
        sample.acknowledged += bytes_per_s * ns / 1'000'000'000;
        sample.unsent = unsent;
        sample.rtt_us = rtt;
        sample.min_rtt_us = rtt_us;
        return pacer.pace_after(sample);
    }
};

TEST(Pacer, SetsNoPaceWhereNothingStands) {
    Connection connection;
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(connection.look(gigabit, rtt_us), no_pace);
}

TEST(Pacer, FollowsTheNetworkIfDataStandInAQueue) {
    Connection connection;
    EXPECT_EQ(connection.look(gigabit, standing_us), no_pace);  // the first look shows no rate
    EXPECT_EQ(connection.look(gigabit, standing_us), gigabit + gigabit / 4);
    // A faster way is found soon, and a slower one once the old rates are forgotten.
    EXPECT_EQ(connection.look(10 * gigabit, standing_us), 10 * (gigabit + gigabit / 4));
    for (int i = 0; i < 15; ++i)
        EXPECT_EQ(connection.look(gigabit / 5, standing_us), 10 * (gigabit + gigabit / 4));
    EXPECT_EQ(connection.look(gigabit / 5, standing_us), gigabit / 5 + gigabit / 20);
}

// Its peer was kept from its core. 256 KiB, which the kernel may hold, leave within 21 ms all the same.
TEST(Pacer, NeverHoldsAConnectionForLong) {
    Connection connection;
    (void)connection.look(100, standing_us);
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(connection.look(i < 5 ? 25'000 : 0, standing_us), slowest_pace);
}

// A connection that rested between two looks has delivered less than its network can.
TEST(Pacer, LearnsNothingFromAConnectionThatRests) {
    Connection connection;
    for (int i = 0; i < 2; ++i)
        (void)connection.look(gigabit, standing_us);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(connection.look(gigabit / 10, standing_us, false), gigabit + gigabit / 4);
        EXPECT_EQ(connection.look(gigabit / 10, standing_us), gigabit + gigabit / 4);
        EXPECT_EQ(connection.look(gigabit / 10, standing_us, true, Pacer::most_apart_ns + 1),
                  gigabit + gigabit / 4);
    }
    // It may have no data because its pace is right.
    EXPECT_EQ(connection.look(0, rtt_us, false), gigabit + gigabit / 4);
}

TEST(Pacer, EndsItsPaceWhereNothingStandsAnyMore) {
    Connection connection;
    for (int i = 0; i < 4; ++i)
        (void)connection.look(gigabit / 1000, standing_us);
    std::uint64_t pace = slowest_pace;
    unsigned looks = 0;
    for (; pace != no_pace && looks < 1000; ++looks) {
        const std::uint64_t next = connection.look(gigabit, rtt_us);
        ASSERT_GT(next, pace);
        pace = next;
    }
    EXPECT_EQ(pace, no_pace);
}

int watch(int epoll, int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int unsent_limit(int socket) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &size) == 0 ? value : -1;
}

TEST(StreamPace, FindsTheConnectionsOfAnEpollSetAndOfThoseWithin) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener, 4), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    const int inside = socket(AF_INET, SOCK_STREAM, 0), outside = socket(AF_INET, SOCK_STREAM, 0);
    for (const int each : {inside, outside})
        ASSERT_EQ(connect(each, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const int outer = epoll_create1(EPOLL_CLOEXEC), inner = epoll_create1(EPOLL_CLOEXEC);
    ASSERT_EQ(watch(outer, inner) | watch(inner, inside) | watch(inner, listener), 0);

    const int unlimited = unsent_limit(outside);
    StreamPace pace;
    pace.keep(outer);
    EXPECT_EQ(unsent_limit(inside), unlimited);
    pace.sent(outer);
    EXPECT_EQ(unsent_limit(inside), 256 << 10);
    EXPECT_EQ(unsent_limit(outside), unlimited);
    EXPECT_EQ(unsent_limit(listener), unlimited);
    for (const int each : {listener, inside, outside, outer, inner})
        close(each);
}

}  // namespace
}  // namespace offpath::transport::test
