#include "control/ring.h"

#include "control/commands.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>

namespace offpath::control {
namespace {

constexpr std::size_t ring_bytes = 4 * max_record_bytes;

struct Ring {
    Ring() : indices(new RingIndices()), data(ring_bytes) {
        indices->tail = 0;
        indices->head = 0;
    }
    RingProducer producer() { return {indices.get(), data}; }
    RingConsumer consumer() { return {indices.get(), data}; }
    std::unique_ptr<RingIndices> indices;
    std::vector<std::byte> data;
};

struct Header {
    std::uint32_t bytes;
    std::uint16_t kind = 1, zero = 0;
};

void fill(std::span<std::byte> room, std::uint32_t number) {
    const Header header{static_cast<std::uint32_t>(room.size())};
    std::memcpy(room.data(), &header, sizeof header);
    for (std::size_t i = sizeof header; i < room.size(); ++i)
        room[i] = static_cast<std::byte>(number * 31 + i);
}

bool right(std::span<const std::byte> record, std::size_t size, std::uint32_t number) {
    if (record.size() != size) return false;
    for (std::size_t i = sizeof(Header); i < size; ++i)
        if (record[i] != static_cast<std::byte>(number * 31 + i)) return false;
    return true;
}

TEST(Ring, KeepsOrderAndContentsAroundTheEnd) {
    Ring ring;
    auto producer = ring.producer();
    auto consumer = ring.consumer();
    std::mt19937 random(1);
    for (std::uint32_t number = 0; number < 5000; ++number) {
        const std::size_t size = sizeof(Header) + random() % (max_record_bytes - sizeof(Header) + 1);
        const auto room = producer.reserve(size);
        ASSERT_EQ(room.size(), size);
        fill(room, number);
        producer.commit();
        std::span<const std::byte> record;
        ASSERT_EQ(consumer.next(record), RingConsumer::Next::record);
        ASSERT_TRUE(right(record, size, number)) << number;
    }
}

TEST(Ring, IsFullUntilTheConsumerTakes) {
    Ring ring;
    auto producer = ring.producer();
    auto consumer = ring.consumer();
    std::uint32_t count = 0;
    for (; !producer.reserve(1024).empty(); ++count) {
        fill(producer.reserve(1024), count);
        producer.commit();
    }
    EXPECT_EQ(count, ring_bytes / 1024);
    std::span<const std::byte> record;
    ASSERT_EQ(consumer.next(record), RingConsumer::Next::record);
    EXPECT_FALSE(producer.reserve(1024).empty());
    EXPECT_TRUE(producer.reserve(1025).empty());
}

// Each side has one thread. The test should run under the thread sanitizer too.
TEST(Ring, CarriesBetweenTwoThreads) {
    Ring ring;
    constexpr std::uint32_t records = 20000;
    const auto size_of = [](std::uint32_t number) { return sizeof(Header) + number * 7919 % 3000; };
    std::thread client([&] {
        auto producer = ring.producer();
        for (std::uint32_t number = 0; number < records; ++number) {
            std::span<std::byte> room;
            while ((room = producer.reserve(size_of(number))).empty())
                std::this_thread::yield();
            fill(room, number);
            producer.commit();
        }
    });
    auto consumer = ring.consumer();
    bool good = true;
    for (std::uint32_t number = 0; number < records;) {
        std::span<const std::byte> record;
        const auto next = consumer.next(record);
        ASSERT_NE(next, RingConsumer::Next::broken);
        if (next == RingConsumer::Next::none) {
            std::this_thread::yield();
            continue;
        }
        good &= right(record, size_of(number), number);
        ++number;
    }
    client.join();
    EXPECT_TRUE(good);
}

// Anything that a hostile client can leave in the ring ends in `broken`, never in a read outside it.
TEST(Ring, NoticesNonsense) {
    const auto with = [](std::uint64_t tail, Header header) {
        Ring ring;
        auto consumer = ring.consumer();
        std::memcpy(ring.data.data(), &header, sizeof header);
        ring.indices->tail = tail;
        std::span<const std::byte> record;
        return consumer.next(record);
    };
    using Next = RingConsumer::Next;
    EXPECT_EQ(with(0, {64}), Next::none);
    EXPECT_EQ(with(64, {64}), Next::record);
    EXPECT_EQ(with(63, {64}), Next::broken);               // not on a cache line
    EXPECT_EQ(with(ring_bytes + 64, {64}), Next::broken);  // more than there is room for
    EXPECT_EQ(with(UINT64_MAX - 63, {64}), Next::broken);
    EXPECT_EQ(with(64, {0}), Next::broken);
    EXPECT_EQ(with(64, {7}), Next::broken);   // less than its header
    EXPECT_EQ(with(64, {65}), Next::broken);  // more than was produced
    EXPECT_EQ(with(ring_bytes, {max_record_bytes + 1}), Next::broken);
    EXPECT_EQ(with(ring_bytes, {UINT32_MAX}), Next::broken);
    EXPECT_EQ(with(128, {64, pad_kind}), Next::broken);  // a pad that does not end the ring
}

}  // namespace
}  // namespace offpath::control
