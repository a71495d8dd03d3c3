// Commands and completions over a link: order, credits, waits.
#include "harness.h"

#include <atomic>
#include <thread>

namespace offpath::link::test {
namespace {

class ChannelTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Over, ChannelTest, testing::ValuesIn(all_ways()),
                         [](const auto& way) { return way.param.name; });

std::uint64_t id_of(std::span<const std::byte> record) {
    control::Command command;
    std::string problem;
    EXPECT_EQ(control::decode_command(record, command, problem), Status::ok) << problem;
    if (const auto* destroy = std::get_if<control::DestroyTeam>(&command)) return destroy->team;
    if (const auto* part = std::get_if<control::SchedulePart>(&command)) return part->schedule;
    return UINT64_MAX;
}

// Short and long commands alternate. Long ones travel in messages of their own.
TEST_P(ChannelTest, CommandsComeInOrder) {
    Joined joined(GetParam());
    constexpr std::uint64_t commands = 3000;
    const auto long_part = pattern_bytes(1, control::max_part_bytes);
    std::thread poster([&] {
        for (std::uint64_t i = 0; i < commands; ++i) {
            control::SchedulePart part{i, long_part.size(), 0, long_part};
            const control::Command command =
                i % 10 == 7 ? control::Command(part) : control::Command(control::DestroyTeam{i});
            while (joined.client->post(command) == Status::retry)
                std::this_thread::yield();
            if (i % 3 == 0) joined.client->ring();
        }
        joined.client->ring();
    });
    std::uint64_t next = 0;
    EXPECT_TRUE(joined.until([&] {
        std::span<const std::byte> record;
        while (joined.proxy->next(record) == control::NextRecord::record) {
            EXPECT_EQ(id_of(record), next);
            ++next;
        }
        return next == commands || testing::Test::HasFailure();
    }));
    EXPECT_EQ(next, commands);
    EXPECT_FALSE(joined.link->lost());
    poster.join();
}

TEST_P(ChannelTest, CreditsRunOutAndComeBack) {
    Joined joined(GetParam());
    const auto long_part = pattern_bytes(1, control::max_part_bytes);
    const control::SchedulePart part{1, long_part.size(), 0, long_part};
    int posted = 0;
    while (joined.client->post(part) == Status::ok)
        ++posted;
    EXPECT_LE(posted * control::max_part_bytes, 1u << 20);
    EXPECT_GE((posted + 1) * control::max_record_bytes, 1u << 20);
    joined.until([] { return false; }, 50ms);
    EXPECT_EQ(joined.client->post(part), Status::retry) << "nobody has taken anything";
    int taken = 0;
    EXPECT_TRUE(joined.until([&] {
        std::span<const std::byte> record;
        while (joined.proxy->next(record) == control::NextRecord::record)
            ++taken;
        return taken == posted;
    }));
    Status again = Status::retry;
    EXPECT_TRUE(joined.until([&] {
        again = joined.client->post(part);
        return again != Status::retry;
    }));
    EXPECT_EQ(again, Status::ok);
    EXPECT_FALSE(joined.link->lost());
}

TEST_P(ChannelTest, CompletionsReachSleepersAndSpinners) {
    Joined joined(GetParam());
    constexpr std::uint32_t rounds = 400;
    std::atomic<bool> finished{false};
    std::thread client([&] {
        for (std::uint32_t i = 0; i < rounds; ++i) {
            control::ClientChannel& channel = *joined.client;
            control::CompletionEntry& entry = channel.completion(i % 8);
            entry.word.store(0, std::memory_order_relaxed);
            while (channel.post(control::DestroyTeam{i}) == Status::retry) {
            }
            channel.ring();
            const auto pending = [&] { return entry.word.load(std::memory_order_acquire) == 0; };
            if (i % 2 == 0 && channel.begin_progress()) {
                for (int spins = 0; spins < 200 && pending(); ++spins)
                    channel.progress();
                channel.end_progress();
            }
            for (int sleeps = 0; pending() && sleeps < 100; ++sleeps) {
                const std::uint32_t sequence = channel.enter_wait();
                if (pending()) channel.sleep(sequence, 100'000'000);
                channel.leave_wait();
            }
            ASSERT_FALSE(pending()) << i;
            ASSERT_EQ(control::completion_status(entry.word), i % 5 == 0 ? Status::truncated : Status::ok);
            ASSERT_EQ(entry.source, i);
            ASSERT_EQ(entry.bytes, i * 1000ull);
        }
        finished = true;
    });
    std::uint32_t done = 0;
    EXPECT_TRUE(joined.until([&] {
        std::span<const std::byte> record;
        while (joined.proxy->next(record) == control::NextRecord::record) {
            joined.proxy->complete(done % 8, done % 5 == 0 ? Status::truncated : Status::ok, done, 0,
                                   done * 1000ull);
            joined.proxy->wake();
            ++done;
        }
        return finished.load();  // the last one may need progress, too
    }));
    client.join();
    EXPECT_EQ(done, rounds);
}

// More completions come at once than one message holds.
TEST_P(ChannelTest, ManyCompletionsAtOnce) {
    Joined joined(GetParam());
    const std::uint32_t all = joined.client->completions();
    for (std::uint32_t slot = 0; slot < all; ++slot)
        joined.proxy->complete(slot, Status::ok, slot, 0, 0);
    joined.proxy->wake();
    EXPECT_TRUE(joined.until([&] {
        for (std::uint32_t slot = 0; slot < all; ++slot)
            if (joined.client->completion(slot).word.load(std::memory_order_acquire) == 0) return false;
        return true;
    }));
    for (std::uint32_t slot = 0; slot < all; ++slot)
        ASSERT_EQ(joined.client->completion(slot).source, slot);
}

TEST(Channel, SecondConnectionsAndBadSizesAreRefused) {
    Joined joined(loopback_way("loopback", {}));
    std::unique_ptr<control::ClientChannel> channel;
    std::unique_ptr<DeviceLink> link;
    std::string problem;
    EXPECT_EQ(joined.host->connect(joined.links->address(), 5, {}, channel, problem), Status::invalid);
    EXPECT_EQ(joined.links->open(joined.host->address(), Joined::token, {}, link, problem), Status::invalid);
    EXPECT_EQ(joined.links->open(joined.host->address(), 0, {}, link, problem), Status::invalid);
    EXPECT_EQ(joined.links->open(joined.host->address(), 9, {100, 1 << 20}, link, problem), Status::invalid);
    EXPECT_EQ(joined.links->open({}, 9, {}, link, problem), Status::protocol);
    EXPECT_FALSE(problem.empty());
}

}  // namespace
}  // namespace offpath::link::test
