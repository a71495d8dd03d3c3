#include "schedule/wire.h"
#include "contains.h"
#include "samples.h"
#include "schedule/builder.h"
#include "schedule/validate.h"

#include <gtest/gtest.h>

#include <random>

namespace offpath::schedule {
namespace {

using offpath::testing::contains;
using offpath::testing::random_schedule;
using offpath::testing::sample_of_everything;

using Bytes = std::vector<std::byte>;
constexpr std::size_t header_bytes = 10;

Bytes body_of(const Bytes& encoded) {
    return {encoded.begin() + header_bytes, encoded.end()};
}

// Decodes the bytes. A result must be valid and encode to the same bytes.
bool decodes(const Bytes& bytes, std::string* problem = nullptr) {
    Schedule schedule;
    std::string text;
    const Status status = decode(bytes, schedule, text);
    if (problem) *problem = text;
    if (status != Status::ok) {
        EXPECT_FALSE(text.empty());
        EXPECT_EQ(schedule, Schedule()) << "set on an error";
        return false;
    }
    EXPECT_EQ(validate(schedule, text), Status::ok) << text;
    EXPECT_EQ(encode(schedule), bytes);
    return true;
}

TEST(Wire, KeepsEveryKindOfOp) {
    const Schedule schedule = sample_of_everything();
    std::string problem;
    ASSERT_EQ(validate(schedule, problem), Status::ok) << problem;
    Schedule back;
    ASSERT_EQ(decode(encode(schedule), back, problem), Status::ok) << problem;
    EXPECT_EQ(back, schedule);
}

TEST(Wire, KeepsRandomSchedules) {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        const Schedule schedule = random_schedule(seed);
        std::string problem;
        ASSERT_EQ(validate(schedule, problem), Status::ok) << "seed " << seed << ": " << problem;
        Schedule back;
        ASSERT_EQ(decode(encode(schedule), back, problem), Status::ok) << "seed " << seed << ": " << problem;
        ASSERT_EQ(back, schedule) << "seed " << seed;
    }
}

TEST(Wire, LooksTheSameOnEveryMachine) {
    Builder b(1, 3);
    b.user_slot(1000);
    const OpId recv = b.recv(0, 300, {0, 128}, 8);
    b.depend(b.send(2, 0, {0, 128}, 8), recv);
    const std::vector<int> body{1,    3,    1,    2,                       // rank, team, slots, ops
                                1,    0xE8, 0x07,                          // user slot of 1000 bytes
                                0x05, 0,    0xAC, 0x02, 0,    0x80, 1, 8,  // recv
                                0x34, 2,    0,    0,    0x80, 1,    2};    // send of as many bytes, after it
    const Bytes encoded = encode(b.finish());
    Bytes expected;
    for (int value : body)
        expected.push_back(static_cast<std::byte>(value));
    EXPECT_EQ(body_of(encoded), expected);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(encoded.data()), 6), std::string("OFPS\2\0", 6));
}

TEST(Wire, TakesAboutTenBytesForAnOp) {
    Builder b(5, 64);
    const auto in = b.user_slot(64 << 20), out = b.user_slot(64 << 20);
    for (std::uint32_t i = 0; i < 64; ++i) {
        b.recv(i, 0, {out, std::uint64_t{i} << 20}, 1 << 20);
        const OpId send = b.send(i, 0, {in, std::uint64_t{i} << 20}, 1 << 20);
        if (i > 4) b.depend(send, send - 8);
    }
    EXPECT_LE(encode(b.finish()).size(), 128 * 10u);
}

TEST(Wire, RefusesWhatIsNoSchedule) {
    std::string problem;
    EXPECT_FALSE(decodes({}, &problem));
    EXPECT_TRUE(contains(problem, "0 bytes are not an encoded schedule"));
    Bytes encoded = encode(sample_of_everything());
    encoded[0] = std::byte{'X'};
    EXPECT_FALSE(decodes(encoded, &problem));
    EXPECT_TRUE(contains(problem, "not an encoded schedule"));
}

TEST(Wire, NamesBothVersionsWhenTheyDiffer) {
    Bytes encoded = encode(sample_of_everything());
    encoded[5] = std::byte{3};
    Schedule schedule;
    std::string problem;
    EXPECT_EQ(decode(encoded, schedule, problem), Status::version);
    EXPECT_EQ(problem, "a schedule of wire version 770, this build reads 2");
}

TEST(Wire, RefusesEveryTruncation) {
    const Bytes encoded = encode(sample_of_everything());
    for (std::size_t size = 0; size < encoded.size(); ++size)
        EXPECT_FALSE(decodes({encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
    // The checksum was corrected to fit.
    const Bytes body = body_of(encoded);
    for (std::size_t size = 0; size < body.size(); ++size)
        EXPECT_FALSE(decodes(seal(std::span(body).first(size)))) << size;
}

TEST(Wire, RefusesTrailingBytes) {
    Bytes body = body_of(encode(sample_of_everything()));
    body.push_back(std::byte{0});
    std::string problem;
    EXPECT_FALSE(decodes(seal(body), &problem));
    EXPECT_TRUE(contains(problem, "behind the last op"));
}

TEST(Wire, FindsEveryDamageOfOneByte) {
    const Bytes encoded = encode(sample_of_everything());
    for (std::size_t at = 0; at < encoded.size(); ++at)
        for (int flip = 1; flip < 256; ++flip) {
            Bytes damaged = encoded;
            damaged[at] ^= static_cast<std::byte>(flip);
            ASSERT_FALSE(decodes(damaged)) << "byte " << at << " xor " << flip;
        }
}

TEST(Wire, GivesOnlyValidSchedulesWhenTheChecksumWasForged) {
    std::size_t accepted = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const Bytes body = body_of(encode(seed == 0 ? sample_of_everything() : random_schedule(seed)));
        for (std::size_t at = 0; at < body.size(); ++at)
            for (int value = 0; value < 256; ++value) {
                Bytes damaged = body;
                damaged[at] = static_cast<std::byte>(value);
                accepted += decodes(seal(damaged));
            }
    }
    EXPECT_GT(accepted, 0u);
}

TEST(Wire, SurvivesRandomBytes) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
        Bytes bytes(random() % 64);
        for (std::byte& byte : bytes)
            byte = static_cast<std::byte>(random() % (i % 2 == 0 ? 256 : 10));
        decodes(bytes);
        decodes(seal(bytes));
    }
}

TEST(Wire, RefusesMoreThanItsLimitsBeforeItAllocates) {
    const auto body = [](std::initializer_list<int> values) {
        Bytes bytes;
        for (int value : values)
            bytes.push_back(static_cast<std::byte>(value));
        return seal(bytes);
    };
    std::string problem;
    EXPECT_FALSE(decodes(body({0, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F}), &problem));
    EXPECT_TRUE(contains(problem, "announces more"));
    EXPECT_FALSE(decodes(body({0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0}), &problem));
    EXPECT_TRUE(contains(problem, "announces more"));
    EXPECT_FALSE(decodes(body({0, 1, 0, 3, 0x07, 0, 0, 0x07, 0}), &problem));
    EXPECT_TRUE(contains(problem, "announces more"));
}

TEST(Wire, RefusesCallsBeyondTheirLimits) {
    const auto call = [](std::initializer_list<int> values) {
        Bytes bytes;
        for (int value : {0, 1, 1, 1, 1, 8, 0x09})  // rank 0 of 1, a user slot of 8 bytes, a compute op
            bytes.push_back(static_cast<std::byte>(value));
        for (int value : values)
            bytes.push_back(static_cast<std::byte>(value));
        return seal(bytes);
    };
    std::string problem;
    // Kernel 7, one byte of arguments, one buffer: slot 0, offset 4, 4 bytes, inout.
    EXPECT_TRUE(decodes(call({7, 1, 0xAB, 1, 0, 4, 4, 3}), &problem)) << problem;
    EXPECT_FALSE(decodes(call({7, 0x81, 0x20, 0}), &problem));
    EXPECT_TRUE(contains(problem, "too many bytes of arguments"));
    EXPECT_FALSE(decodes(call({7, 0, 17}), &problem));
    EXPECT_TRUE(contains(problem, "too many buffers"));
    EXPECT_FALSE(decodes(call({7, 5, 0xAB}), &problem));
    EXPECT_TRUE(contains(problem, "ends too early"));
    EXPECT_FALSE(decodes(call({7, 0, 1, 0, 4, 4}), &problem));
    EXPECT_TRUE(contains(problem, "ends too early"));
    EXPECT_FALSE(decodes(call({7, 0, 1, 0, 4, 5, 1}), &problem));
    EXPECT_TRUE(contains(problem, "leaves slot 0"));
    EXPECT_FALSE(decodes(call({7, 0, 1, 0, 4, 4, 0}), &problem));
    EXPECT_TRUE(contains(problem, "access 0"));
}

TEST(Wire, RefusesSecondWaysToSayTheSame) {
    const auto body = [](std::initializer_list<int> values) {
        Bytes bytes;
        for (int value : values)
            bytes.push_back(static_cast<std::byte>(value));
        return seal(bytes);
    };
    std::string problem;
    // Two signals to rank 0 of 1, the second after the first. The cases below deviate from this form.
    EXPECT_TRUE(decodes(body({0, 1, 0, 2, 0x07, 0, 0, 0x27, 0, 0, 2}), &problem)) << problem;
    EXPECT_FALSE(decodes(body({0x80, 0, 1, 0, 2, 0x07, 0, 0, 0x27, 0, 0, 2}), &problem));
    EXPECT_TRUE(contains(problem, "shortest form"));
    EXPECT_FALSE(decodes(body({0, 1, 0, 2, 0x07, 0, 0, 0x47, 0, 0, 2, 2}), &problem));
    EXPECT_TRUE(contains(problem, "out of order"));
    EXPECT_FALSE(decodes(body({0, 1, 0, 2, 0x07, 0, 0, 0x27, 0, 0, 0}), &problem));
    EXPECT_TRUE(contains(problem, "names itself"));
    // These distances, -2^63 and 2^62, lead far outside.
    for (int low : {0xFF, 0xFE})
        EXPECT_FALSE(decodes(body({0,   1,    0,    2,    0x07, 0,    0,    0x27, 0,    0,
                                   low, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, low & 1}),
                             &problem))
            << low;
    EXPECT_FALSE(decodes(body({0, 1, 0, 2, 0x07, 0, 0, 0x17, 0, 0}), &problem));
    EXPECT_TRUE(contains(problem, "unknown head"));
    // A copy of no bytes must use the flag for "as before".
    EXPECT_FALSE(decodes(body({0, 1, 1, 1, 1, 8, 0x01, 0, 0, 0, 0, 0}), &problem));
    EXPECT_TRUE(contains(problem, "repeats the size"));
    // A compute op has no bytes, so it cannot have as many as the op before.
    EXPECT_TRUE(decodes(body({0, 1, 0, 1, 0x09, 7, 1, 9, 0}), &problem)) << problem;
    EXPECT_FALSE(decodes(body({0, 1, 0, 1, 0x19, 7, 1, 9, 0}), &problem));
    EXPECT_TRUE(contains(problem, "unknown head"));
}

TEST(Wire, RefusesInvalidSchedulesWithTheReason) {
    const Schedule invalid(0, 2, {{SlotKind::user, 8}},
                           {{.kind = OpKind::send, .peer = 1, .tag = 3, .src = {0, 4}, .bytes = 5}}, {});
    std::string problem;
    Schedule schedule;
    EXPECT_EQ(decode(encode(invalid), schedule, problem), Status::protocol);
    EXPECT_EQ(problem,
              "an invalid schedule: op 0 (send to rank 1, tag 3): range [4, 9) leaves slot 0 of 8 bytes");
}

}  // namespace
}  // namespace offpath::schedule
