// The matcher compared with a naive model of MPI's rules, and the gate that restores order.
#include "matching/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace offpath::matching {
namespace {

TEST(Matcher, AgreesWithTheNaiveModel) {
    struct Entry {
        Envelope envelope;
        std::uint64_t cookie;
    };
    auto matches = [](Envelope wanted, Envelope message) {
        return (wanted.source == any || (wanted.source & wanted.mask) == (message.source & wanted.mask)) &&
               (wanted.tag == any || wanted.tag == message.tag);
    };
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        Matcher matcher;
        std::vector<Entry> receives, messages;
        std::uint64_t cookie = 1;
        for (int i = 0; i < 400; ++i, ++cookie) {
            const Envelope envelope{static_cast<std::uint32_t>(random() % 3),
                                    static_cast<std::uint32_t>(random() % 3)};
            if (random() % 2) {
                // A receive takes messages of ranks 2n and 2n + 1, of even or odd ranks, or of one rank.
                const std::uint32_t masks[] = {~1u, 1, ~0u, ~0u};
                const Envelope wanted{random() % 4 ? envelope.source : any, random() % 4 ? envelope.tag : any,
                                      masks[random() % 4]};
                auto it = std::find_if(messages.begin(), messages.end(),
                                       [&](const Entry& m) { return matches(wanted, m.envelope); });
                const auto seen = matcher.peek(wanted);
                const auto got = matcher.post(wanted, cookie);
                ASSERT_EQ(seen, got);
                ASSERT_EQ(got.has_value(), it != messages.end());
                if (got) {
                    ASSERT_EQ(*got, it->cookie);
                    messages.erase(it);
                } else {
                    receives.push_back({wanted, cookie});
                }
            } else {
                auto it = std::find_if(receives.begin(), receives.end(),
                                       [&](const Entry& r) { return matches(r.envelope, envelope); });
                const auto got = matcher.arrive(envelope, cookie);
                ASSERT_EQ(got.has_value(), it != receives.end());
                if (got) {
                    ASSERT_EQ(*got, it->cookie);
                    receives.erase(it);
                } else {
                    messages.push_back({envelope, cookie});
                }
            }
            if (!receives.empty() && random() % 20 == 0) {
                const std::size_t victim = random() % receives.size();
                ASSERT_TRUE(matcher.cancel_receive(receives[victim].cookie));
                ASSERT_FALSE(matcher.cancel_receive(receives[victim].cookie));
                receives.erase(receives.begin() + static_cast<std::ptrdiff_t>(victim));
            }
            ASSERT_EQ(matcher.receives(), receives.size());
            ASSERT_EQ(matcher.messages(), messages.size());
        }
        std::vector<std::uint64_t> left;
        matcher.clear([&](std::uint64_t c) { left.push_back(c); },
                      [&](std::uint64_t c) { left.push_back(c); });
        ASSERT_EQ(left.size(), receives.size() + messages.size());
        ASSERT_EQ(matcher.receives() + matcher.messages(), 0u);
    }
}

TEST(OrderGate, RestoresAnyOrderAndRefusesRepeats) {
    std::vector<std::uint32_t> numbers(100);
    for (std::uint32_t i = 0; i < numbers.size(); ++i)
        numbers[i] = i;
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(3));
    OrderGate<std::uint32_t> gate;
    std::vector<std::uint32_t> passed;
    for (std::uint32_t number : numbers) {
        ASSERT_TRUE(gate.arrive(number, number, [&](std::uint32_t m) { passed.push_back(m); }));
        ASSERT_FALSE(gate.arrive(number, number, [&](std::uint32_t) { FAIL(); }));
    }
    ASSERT_EQ(passed.size(), numbers.size());
    ASSERT_TRUE(std::is_sorted(passed.begin(), passed.end()));
    ASSERT_EQ(gate.waiting(), 0u);
}

}  // namespace
}  // namespace offpath::matching
