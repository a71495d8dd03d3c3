// Windows: small operations of a round travel together.
#include "engine/impl.h"
#include "onesided_fixture.h"

#include <numeric>
#include <random>

namespace offpath::testing {
namespace {

TEST(OneSidedBundles, SmallOnesOfARoundTravelTogether) {
    WorldOptions options;
    options.memory = BackEnd::map;
    World world(options);
    Windows windows(world, 4096);
    std::array<std::uint64_t, 64> words{}, back{};
    std::iota(words.begin(), words.end(), 100u);
    const auto sent = [&] {
        return world.engine_of(0).counters().messages_sent + world.engine_of(1).counters().messages_sent;
    };
    const std::uint64_t before = sent();
    for (std::size_t i = 0; i < words.size(); ++i)
        windows.start(0, put(1, 8 * i, std::as_bytes(std::span(&words[i], 1))));
    ASSERT_EQ(windows.flush(0), Status::ok);
    for (std::size_t i = 0; i < words.size(); ++i) {
        OneSidedCall get = put(1, 8 * i, {});
        get.kind = OpKind::get;
        get.bytes = 8;
        get.result = World::range(&back[i], 8);
        windows.start(0, get);
    }
    ASSERT_EQ(windows.flush(0), Status::ok);
    EXPECT_EQ(back, words);
    // 64 requests fit into one message of 8 KiB, or into two.
    EXPECT_LE(sent() - before, 8u);
}

// This also holds if the transport has the messages fetched, and delivers them late.
TEST(OneSidedBundles, OfLargerOnesHaveManyToo) {
    for (const std::size_t eager : {std::size_t{1} << 20, std::size_t{4} << 10}) {
        WorldOptions options;
        options.memory = BackEnd::map;
        options.loopback.eager_bytes = eager;
        options.faults = transport::FaultPlan{.seed = 9, .delay_message = 0.3, .delay_completion = 0.3};
        World world(options);
        constexpr std::size_t count = 64, size = 4096;
        Windows windows(world, count * size);
        std::vector<std::uint32_t> data(count * size / 4), back(data.size());
        std::iota(data.begin(), data.end(), 1u);
        const auto sent = [&] {
            return world.engine_of(0).counters().messages_sent + world.engine_of(1).counters().messages_sent;
        };
        const std::uint64_t before = sent();
        const auto bytes = std::as_bytes(std::span(data));
        for (std::size_t i = 0; i < count; ++i) {
            const auto now = bytes.subspan(i * size, size);
            OneSidedCall call = put(1, i * size, {});
            call.bytes = size;
            call.inlined.assign(now.begin(), now.end());
            windows.start(0, call);
        }
        ASSERT_EQ(windows.flush(0), Status::ok);
        EXPECT_EQ(std::memcmp(windows.memory[1].data(), data.data(), count * size), 0);
        for (std::size_t i = 0; i < count; ++i) {
            OneSidedCall get = put(1, i * size, {});
            get.kind = OpKind::get;
            get.bytes = size;
            get.result = World::range(back.data() + i * size / 4, size);
            windows.start(0, get);
        }
        ASSERT_EQ(windows.flush(0), Status::ok);
        EXPECT_EQ(back, data);
        // One message carries 14 of them, in both directions.
        EXPECT_LE(sent() - before, 24u) << eager;
    }
}

TEST(OneSidedBundles, NonsenseIsDropped) {
    WorldOptions options;
    options.memory = BackEnd::map;
    World world(options);
    Windows windows(world, 64);
    const auto stranger = world.stranger();
    transport::Endpoint* endpoint = nullptr;
    ASSERT_EQ(stranger->connect(world.address_of(1), &endpoint), Status::ok);
    std::mt19937 random(3);
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> payload(random() % 300);
        for (auto& byte : payload)
            byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
        engine::OneSidedBundle header{engine::Kind::one_sided_bundle, static_cast<std::uint32_t>(i % 5)};
        if (i % 7 == 0) header.messages = UINT32_MAX;
        if (payload.size() >= 8) {
            const engine::Bundled sizes{static_cast<std::uint16_t>(i % 2 == 0 ? 16 : random() % 200),
                                        static_cast<std::uint16_t>(random() % 100)};
            std::memcpy(payload.data(), &sizes, sizeof sizes);
            const auto kind = static_cast<std::uint32_t>(40 + random() % 3);
            std::memcpy(payload.data() + 4, &kind, sizeof kind);
        }
        ASSERT_EQ(stranger->post(*endpoint, World::stamped(1, 2, engine::bytes_of(header)), payload),
                  Status::ok);
        world.round();
    }
    EXPECT_EQ(windows.memory[1], std::vector<std::byte>(64));
    const std::uint64_t word = 7;
    windows.start(0, put(1, 0, std::as_bytes(std::span(&word, 1))));
    EXPECT_EQ(windows.flush(0), Status::ok);
    EXPECT_EQ(std::memcmp(windows.memory[1].data(), &word, 8), 0);
}

}  // namespace
}  // namespace offpath::testing
