// Staged transfers over a link: all sizes, both directions at once, bad addresses.
#include "harness.h"

#include "link/wire.h"

#include <sys/mman.h>

#include <algorithm>

namespace offpath::link::test {
namespace {

using memory::StagingDirection;

class StagingTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Over, StagingTest, testing::ValuesIn(all_ways()),
                         [](const auto& way) { return way.param.name; });

TEST_P(StagingTest, EverySizeBothWays) {
    Joined joined(GetParam());
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{8192}, std::size_t{8193},
                                    std::size_t{65536}, std::size_t{part_bytes}, std::size_t{part_bytes} + 1,
                                    std::size_t{1} << 20, std::size_t{16} << 20}) {
        const auto host_source = pattern_bytes(bytes, bytes), device_source = pattern_bytes(bytes + 1, bytes);
        std::vector<std::byte> host_target(bytes + 2), device_target(bytes);
        Arrival in, out;
        ASSERT_EQ(joined.transfers->start(StagingDirection::to_device, address_of(host_source.data()),
                                          device_target.data(), bytes, &in),
                  Status::in_progress);
        ASSERT_EQ(joined.transfers->start(StagingDirection::to_host, address_of(host_target.data() + 1),
                                          const_cast<std::byte*>(device_source.data()), bytes, &out),
                  Status::in_progress);
        ASSERT_TRUE(joined.until([&] { return in.calls + out.calls == 2; })) << bytes;
        EXPECT_EQ(in.status, Status::ok) << bytes;
        EXPECT_EQ(out.status, Status::ok) << bytes;
        EXPECT_TRUE(device_target == host_source) << bytes;
        EXPECT_TRUE(std::equal(device_source.begin(), device_source.end(), host_target.begin() + 1)) << bytes;
        EXPECT_EQ(host_target.front(), std::byte{0});
        EXPECT_EQ(host_target.back(), std::byte{0}) << "a byte too many";
    }
    EXPECT_TRUE(joined.transfers->drained());
    EXPECT_EQ(joined.host->counters().bytes_to_host, joined.links->counters().bytes_to_host);
    EXPECT_EQ(joined.host->counters().bytes_to_device, joined.links->counters().bytes_to_device);
}

TEST_P(StagingTest, ManyTransfersAtOnce) {
    Joined joined(GetParam());
    constexpr std::size_t bytes = 300001, transfers = 40;
    std::vector<std::vector<std::byte>> sources, targets(transfers, std::vector<std::byte>(bytes));
    std::vector<Arrival> arrivals(transfers);
    for (std::size_t i = 0; i < transfers; ++i)
        sources.push_back(pattern_bytes(i, bytes));
    for (std::size_t i = 0; i < transfers; ++i) {
        const bool to_host = i % 2 == 1;
        ASSERT_EQ(
            joined.transfers->start(to_host ? StagingDirection::to_host : StagingDirection::to_device,
                                    address_of(to_host ? targets[i].data() : sources[i].data()),
                                    to_host ? sources[i].data() : targets[i].data(), bytes, &arrivals[i]),
            Status::in_progress);
    }
    ASSERT_TRUE(joined.until([&] {
        return std::ranges::all_of(arrivals, [](const Arrival& arrival) { return arrival.calls == 1; });
    }));
    for (std::size_t i = 0; i < transfers; ++i) {
        EXPECT_EQ(arrivals[i].status, Status::ok);
        EXPECT_TRUE(targets[i] == sources[i]) << i;
    }
}

TEST_P(StagingTest, CopiesWithinTheHostMoveNothingOverTheLink) {
    Joined joined(GetParam());
    ASSERT_TRUE(joined.transfers->copies_within());
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{part_bytes}, std::size_t{part_bytes} + 1, std::size_t{5} << 20}) {
        const auto source = pattern_bytes(bytes, bytes);
        std::vector<std::byte> target(bytes + 2);
        Arrival arrival;
        ASSERT_EQ(
            joined.transfers->copy(address_of(source.data()), address_of(target.data() + 1), bytes, &arrival),
            Status::in_progress);
        ASSERT_TRUE(joined.until([&] { return arrival.calls == 1; })) << bytes;
        EXPECT_EQ(arrival.status, Status::ok);
        EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin() + 1)) << bytes;
        EXPECT_EQ(target.front(), std::byte{0});
        EXPECT_EQ(target.back(), std::byte{0}) << "a byte too many";
        for (const bool from_nowhere : {true, false}) {
            Arrival bad;
            ASSERT_EQ(joined.transfers->copy(from_nowhere ? 64 : address_of(source.data()),
                                             from_nowhere ? address_of(target.data()) : 64, bytes, &bad),
                      Status::in_progress);
            ASSERT_TRUE(joined.until([&] { return bad.calls == 1; })) << bytes;
            EXPECT_EQ(bad.status, Status::access);
        }
    }
    EXPECT_EQ(joined.links->counters().bytes_to_host, 0);
    EXPECT_EQ(joined.links->counters().bytes_to_device, 0);
    EXPECT_TRUE(joined.transfers->drained());
}

TEST_P(StagingTest, BadAddressesAreErrors) {
    Joined joined(GetParam());
    const std::size_t page = 4096, bytes = 1 << 20;
    auto* const hole = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(hole, MAP_FAILED);
    std::vector<std::byte> local(bytes);
    // Not unmapped: another thread could map something there.
    ASSERT_EQ(mprotect(hole + bytes / 2, page, PROT_NONE), 0);
    auto* const read_only =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    auto* const forbidden =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    // With one size, the hole is in a short part at the end.
    const std::size_t cut = std::size_t{part_bytes} + 100;
    for (const std::size_t size : {std::size_t{1}, page, cut, bytes}) {
        const std::byte* const broken = size == bytes ? hole
                                        : size == cut ? hole + bytes / 2 - part_bytes
                                                      : hole + bytes / 2;
        for (const void* where : {static_cast<const void*>(broken), static_cast<const void*>(forbidden),
                                  reinterpret_cast<const void*>(std::uintptr_t{64}),
                                  reinterpret_cast<const void*>(UINTPTR_MAX - 8 - size)}) {
            EXPECT_EQ(joined.staged(StagingDirection::to_device, where, local.data(), size), Status::access);
            EXPECT_EQ(joined.staged(StagingDirection::to_host, where, local.data(), size), Status::access);
        }
        EXPECT_EQ(joined.staged(StagingDirection::to_host, read_only, local.data(), size), Status::access);
        EXPECT_EQ(joined.staged(StagingDirection::to_device, read_only, local.data(), size), Status::ok);
    }
    EXPECT_FALSE(joined.link->lost()) << "others' transfers go on";
    auto good = pattern_bytes(3, bytes);
    EXPECT_EQ(joined.staged(StagingDirection::to_device, good.data(), local.data(), bytes), Status::ok);
    EXPECT_TRUE(local == good);
    munmap(hole, bytes);
    munmap(read_only, bytes);
    munmap(forbidden, bytes);
}

// The completion starts the next transfer, as the engine's do.
TEST_P(StagingTest, CompletionsMayStartTransfers) {
    Joined joined(GetParam());
    struct Chain : Completion {
        memory::StagedTransfers* transfers = nullptr;
        std::vector<std::byte> from, to;
        int left = 20;
        Status status = Status::in_progress;
    } chain;
    chain.transfers = joined.transfers.get();
    chain.from = pattern_bytes(8, 400000);
    chain.to.resize(400000);
    chain.function = [](Completion* self, Status status) {
        auto& us = *static_cast<Chain*>(self);
        us.status = status;
        if (status == Status::ok && --us.left > 0)
            us.transfers->start(StagingDirection::to_device, address_of(us.from.data()), us.to.data(),
                                us.to.size(), &us);
    };
    ASSERT_EQ(joined.transfers->start(StagingDirection::to_device, address_of(chain.from.data()),
                                      chain.to.data(), chain.to.size(), &chain),
              Status::in_progress);
    EXPECT_TRUE(joined.until([&] { return chain.left == 0; }));
    EXPECT_TRUE(chain.to == chain.from);
    EXPECT_TRUE(joined.transfers->drained());
}

TEST_P(StagingTest, StopWaitsForWhatIsOnItsWay) {
    Joined joined(GetParam());
    constexpr std::size_t bytes = 8 << 20;  // more than the window
    std::vector<std::byte> from = pattern_bytes(1, bytes), to(bytes);
    Arrival running, queued;
    ASSERT_EQ(joined.transfers->start(StagingDirection::to_host, address_of(to.data()), from.data(), bytes,
                                      &running),
              Status::in_progress);
    joined.transfers->progress();
    ASSERT_EQ(joined.transfers->start(StagingDirection::to_host, address_of(to.data()), from.data(), bytes,
                                      &queued),
              Status::in_progress);
    joined.transfers->stop(Status::canceled);
    EXPECT_EQ(queued.status, Status::canceled) << "nothing of it was on its way";
    EXPECT_EQ(running.calls, 0);
    EXPECT_FALSE(joined.transfers->drained());
    EXPECT_EQ(
        joined.transfers->start(StagingDirection::to_host, address_of(to.data()), from.data(), 1, &queued),
        Status::canceled);
    EXPECT_TRUE(joined.until([&] { return joined.transfers->drained(); }));
    EXPECT_EQ(running.status, Status::canceled);
    EXPECT_EQ(running.calls, 1);
    EXPECT_EQ(to[0], from[0]);
    EXPECT_EQ(to[bytes - 1], std::byte{0}) << "what was not on its way was never sent";
}

TEST_P(StagingTest, AbandonEndsEverythingAtOnce) {
    constexpr std::size_t bytes = 4 << 20;
    // The host's end uses these until it ends.
    std::vector<std::byte> from(bytes), to(bytes), local(bytes);
    Joined joined(GetParam());
    Arrival in, out;
    ASSERT_EQ(joined.transfers->start(StagingDirection::to_device, address_of(from.data()), local.data(),
                                      bytes, &in),
              Status::in_progress);
    ASSERT_EQ(
        joined.transfers->start(StagingDirection::to_host, address_of(to.data()), from.data(), bytes, &out),
        Status::in_progress);
    joined.step();
    joined.transfers->abandon(Status::peer_lost);
    EXPECT_EQ(in.status, Status::peer_lost);
    EXPECT_EQ(out.status, Status::peer_lost);
    EXPECT_TRUE(joined.transfers->drained());
    EXPECT_TRUE(joined.link->lost());
    std::fill(local.begin(), local.end(), std::byte{7});
    joined.until([] { return false; }, 50ms);
    EXPECT_TRUE(std::ranges::all_of(local, [](std::byte b) { return b == std::byte{7}; }))
        << "something came into memory that was given back";
    EXPECT_EQ(in.calls + out.calls, 2);
}

}  // namespace
}  // namespace offpath::link::test
