// Two processes over UCX, one of which is killed; and the library that clients load.
#include "harness.h"
#include "link/plugin/plugin_loader.h"
#include "peer_process.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace offpath::link::test {
namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST(Processes, DeviceNoticesAHostThatIsKilledInTheMiddle) {
    setenv("UCX_NET_DEVICES", "lo", 0);
    Peer host("host");
    const auto host_address = from_hex(host.read_line());
    const std::uint64_t memory = std::stoull(host.read_line());
    std::unique_ptr<DeviceLinks> links;
    std::string problem, why;
    ASSERT_EQ(open_device_links("", links, problem), Status::ok) << problem;
    std::unique_ptr<DeviceLink> link;
    ASSERT_EQ(links->open(host_address, peer_token, {}, link, problem), Status::ok) << problem;
    host.write_line(to_hex(link->address()));
    ASSERT_EQ(host.read_line(), "connected");
    auto transfers = link->take_transfers();

    std::vector<std::byte> local(1 << 20);
    Arrival first;
    ASSERT_EQ(
        transfers->start(memory::StagingDirection::to_device, memory, local.data(), local.size(), &first),
        Status::in_progress);
    const auto until = [&](auto done, double limit) {
        const double end = seconds() + limit;
        while (!done() && seconds() < end) {
            links->progress();
            transfers->progress();
        }
        return done();
    };
    ASSERT_TRUE(until([&] { return first.calls == 1; }, 20));
    EXPECT_EQ(first.status, Status::ok);
    EXPECT_TRUE(std::ranges::all_of(local, [](std::byte b) { return b == std::byte{42}; }));

    std::vector<Arrival> running(8);
    for (Arrival& arrival : running)
        ASSERT_EQ(
            transfers->start(memory::StagingDirection::to_host, memory, local.data(), local.size(), &arrival),
            Status::in_progress);
    transfers->progress();
    host.kill();
    EXPECT_TRUE(until([&] { return link->health(why) != Status::ok; }, 20));
    EXPECT_EQ(link->health(why), Status::peer_lost);
    EXPECT_NE(why.find("host"), std::string::npos) << why;
    transfers->abandon(Status::peer_lost);
    for (const Arrival& arrival : running)
        EXPECT_EQ(arrival.calls, 1);
    EXPECT_TRUE(transfers->drained());
}

TEST(Processes, HostNoticesADeviceThatIsKilled) {
    setenv("UCX_NET_DEVICES", "lo", 0);
    Peer device("device");
    std::unique_ptr<HostLink> host;
    std::unique_ptr<control::ClientChannel> channel;
    std::string problem;
    ASSERT_EQ(load_host_link({}, host, problem), Status::ok) << problem;
    device.write_line(to_hex(host->address()));
    const auto device_address = from_hex(device.read_line());
    ASSERT_EQ(host->connect(device_address, peer_token, {}, channel, problem), Status::ok) << problem;
    const auto wait = [&](auto done) {
        const double end = seconds() + 60;
        while (!done() && seconds() < end) {
            const std::uint32_t sequence = channel->enter_wait();
            if (!done()) channel->sleep(sequence, 50'000'000);
            channel->leave_wait();
        }
        return done();
    };
    ASSERT_EQ(channel->post(control::DestroyTeam{1}), Status::ok);
    channel->ring();
    ASSERT_TRUE(wait([&] { return channel->completion(0).word.load() != 0; }));
    std::string why;
    EXPECT_FALSE(channel->lost(why));
    pollfd end{host->end_event(), POLLIN, 0};
    EXPECT_EQ(poll(&end, 1, 0), 0);
    device.kill();
    EXPECT_EQ(poll(&end, 1, 10'000), 1) << "the agent alone gives up its end";
    EXPECT_TRUE(wait([&] { return channel->lost(why); }));
    EXPECT_NE(why.find("device"), std::string::npos) << why;
    channel->abandon();
    EXPECT_EQ(channel->post(control::DestroyTeam{2}), Status::ok) << "harmless";
    channel->ring();
}

TEST(Processes, AHostThatGivesUpItsEndIsWrittenNoMore) {
    for (const Way& way : all_ways()) {
        Joined joined(way);
        std::vector<std::byte> from(1 << 20, std::byte{1}), to(1 << 20);
        ASSERT_EQ(joined.staged(memory::StagingDirection::to_host, to.data(), from.data(), to.size()),
                  Status::ok);
        joined.host->give_up("it is no longer wanted");
        pollfd end{joined.host->end_event(), POLLIN, 0};
        ASSERT_EQ(poll(&end, 1, 10'000), 1) << way.name;
        std::ranges::fill(to, std::byte{2});
        Arrival late;
        if (joined.transfers->start(memory::StagingDirection::to_host, address_of(to.data()), from.data(),
                                    from.size(), &late) == Status::in_progress) {
            const double until = seconds() + 0.2;
            joined.until([&] { return seconds() > until; });
            joined.transfers->abandon(Status::peer_lost);
        }
        EXPECT_TRUE(std::ranges::all_of(to, [](std::byte b) { return b == std::byte{2}; })) << way.name;
    }
}

TEST(Processes, AgentIsQuietWhenIdle) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "UCX's shared memory between two threads stalls under the thread sanitizer";
#endif
    for (const Way& way : {tcp_way(), ucx_way(), rings_way(ucx_way(), "rings", "sysv")}) {
        Joined joined(way);
        std::vector<std::byte> from(1 << 20), to(1 << 20);
        ASSERT_EQ(joined.staged(memory::StagingDirection::to_device, from.data(), to.data(), to.size()),
                  Status::ok);
        // The agent comes to rest. An agent that looks for work without sleeping, or whose events do not
        // end, never has such a second.
        bool rests = false;
        for (const double end = seconds() + 60; !rests && seconds() < end;) {
            const auto before = joined.host->counters();
            usleep(1000000);
            const auto after = joined.host->counters();
            rests = after.agent_cpu_s - before.agent_cpu_s < 0.005 && after.wakeups - before.wakeups < 20;
        }
        EXPECT_TRUE(rests) << way.name;
    }
}

}  // namespace
}  // namespace offpath::link::test
