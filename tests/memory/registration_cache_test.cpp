#include "memory/registration_cache.h"

#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace offpath::memory {
namespace {

// A handle that knows how many of its kind are alive.
struct Counted {
    explicit Counted(int n, int* live) : name(n), alive(live) { ++*alive; }
    Counted(Counted&& other) noexcept : name(other.name), alive(std::exchange(other.alive, nullptr)) {}
    Counted& operator=(Counted&&) = delete;
    ~Counted() {
        if (alive != nullptr) --*alive;
    }
    int name;
    int* alive;
};

using Cache = RegistrationCache<Counted, NullMutex>;

TEST(RegistrationCache, FindsWhatCoversTheRange) {
    int live = 0;
    Cache cache(1000);
    EXPECT_FALSE(cache.find(100, 10));
    EXPECT_TRUE(cache.insert(100, 50, Counted(1, &live)));
    EXPECT_EQ(cache.find(100, 50)->name, 1);
    EXPECT_EQ(cache.find(120, 30)->name, 1);
    EXPECT_FALSE(cache.find(120, 31));
    EXPECT_FALSE(cache.find(99, 2));
    EXPECT_FALSE(cache.find(150, 1));
    EXPECT_FALSE(cache.find(100, 0));
    EXPECT_FALSE(cache.find(~std::uint64_t{0}, 2));
    EXPECT_EQ(cache.stats().hits, 2u);
}

TEST(RegistrationCache, GenerationsDoNotMix) {
    int live = 0;
    Cache cache(1000);
    const auto first = cache.insert(100, 50, Counted(1, &live)).generation();
    EXPECT_TRUE(cache.find(100, 50, first));
    EXPECT_FALSE(cache.find(100, 50, first + 1));
    cache.invalidate(149, 1);
    EXPECT_FALSE(cache.find(100, 50));
    EXPECT_EQ(live, 0);
    const auto second = cache.insert(100, 50, Counted(2, &live)).generation();
    EXPECT_NE(first, second);
    EXPECT_FALSE(cache.find(100, 50, first));
    EXPECT_EQ(cache.find(100, 50, second)->name, 2);
}

TEST(RegistrationCache, DroppedHandlesLiveUntilTheirLastPin) {
    int live = 0;
    Cache cache(100);
    auto pin = cache.insert(0x1000, 60, Counted(1, &live));
    auto again = cache.find(0x1000, 60);
    EXPECT_EQ(cache.invalidate(0x1000, 60), 1u);
    EXPECT_FALSE(cache.find(0x1000, 60));
    EXPECT_FALSE(cache.insert(0x1000, 60, Counted(2, &live))) << "dropped but pinned bytes count";
    pin.reset();
    EXPECT_EQ(live, 1);
    EXPECT_EQ(again->name, 1);
    again.reset();
    EXPECT_EQ(live, 0);
    EXPECT_TRUE(cache.insert(0x1000, 60, Counted(2, &live)));
}

TEST(RegistrationCache, LeastRecentlyUsedGoesFirst) {
    int live = 0;
    Cache cache(30);
    for (int i = 0; i < 3; ++i)
        cache.insert(static_cast<std::uint64_t>(100 * i), 10, Counted(i, &live));
    EXPECT_TRUE(cache.find(0, 10));
    cache.insert(500, 10, Counted(5, &live));
    EXPECT_TRUE(cache.find(0, 10));
    EXPECT_FALSE(cache.find(100, 10));
    EXPECT_TRUE(cache.find(200, 10));
    EXPECT_EQ(live, 3);
    EXPECT_EQ(cache.stats().evictions, 1u);
    EXPECT_FALSE(cache.insert(1000, 31, Counted(6, &live))) << "larger than the cap";
    EXPECT_EQ(live, 3) << "a refusal evicts nobody";
}

TEST(RegistrationCache, ALargerRangeSupersedes) {
    int live = 0;
    Cache cache(1000);
    auto pinned = cache.insert(100, 10, Counted(1, &live));
    cache.insert(120, 10, Counted(2, &live));
    cache.insert(90, 50, Counted(3, &live));
    EXPECT_EQ(cache.find(100, 10)->name, 3);
    EXPECT_EQ(live, 2) << "the pinned one and the new one";
    EXPECT_EQ(cache.stats().entries, 1u);
}

// The same calls on a cache and on a plain list of entries.
struct Model {
    struct Entry {
        std::uint64_t address, bytes, generation;
        int name;
        int pins;
        bool dropped;
        std::uint64_t last_use;
    };
    std::vector<Entry> entries;
    std::uint64_t cap, clock = 0;

    std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (const Entry& e : entries)
            sum += e.bytes;
        return sum;
    }
    std::uint64_t pinned() const {
        std::uint64_t sum = 0;
        for (const Entry& e : entries)
            sum += e.pins > 0 ? e.bytes : 0;
        return sum;
    }
    void sweep() {
        std::erase_if(entries, [](const Entry& e) { return e.dropped && e.pins == 0; });
    }
    bool covers(const Entry& e, std::uint64_t a, std::uint64_t n, std::uint64_t g) const {
        return !e.dropped && e.address <= a && a + n <= e.address + e.bytes && (g == 0 || g == e.generation);
    }
    bool insert(std::uint64_t a, std::uint64_t n, std::uint64_t g, int name) {
        if (n > cap || pinned() + n > cap) return false;
        for (Entry& e : entries)
            e.dropped |= e.address >= a && e.address + e.bytes <= a + n;
        sweep();
        while (bytes() + n > cap) {
            Entry* oldest = nullptr;
            for (Entry& e : entries)
                if (e.pins == 0 && (oldest == nullptr || e.last_use < oldest->last_use)) oldest = &e;
            oldest->dropped = true;
            sweep();
        }
        entries.push_back({a, n, g, name, 1, false, 0});
        return true;
    }
};

TEST(RegistrationCache, AgreesWithANaiveModel) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        std::mt19937_64 random(seed);
        int live = 0;
        Cache cache(200);
        Model model;
        model.cap = 200;
        std::vector<Cache::Pin> pins;
        const auto entry_of = [&](int name) -> Model::Entry& {
            return *std::find_if(model.entries.begin(), model.entries.end(),
                                 [&](const auto& e) { return e.name == name; });
        };
        for (int step = 0; step < 600; ++step) {
            const std::uint64_t address = random() % 256, bytes = 1 + random() % 60;
            switch (random() % 6) {
                case 0:
                case 1: {
                    const std::uint64_t generation = 1 + random() % 3;
                    auto pin = cache.insert(address, bytes, Counted(step, &live), generation);
                    ASSERT_EQ(static_cast<bool>(pin), model.insert(address, bytes, generation, step));
                    if (pin) pins.push_back(std::move(pin));
                    break;
                }
                case 2:
                case 3: {
                    const std::uint64_t generation = random() % 4;
                    const auto covered = [&](const auto& e) {
                        return model.covers(e, address, bytes, generation);
                    };
                    auto pin = cache.find(address, bytes, generation);
                    const bool there = std::any_of(model.entries.begin(), model.entries.end(), covered);
                    ASSERT_EQ(static_cast<bool>(pin), there) << "seed " << seed << " step " << step;
                    if (!pin) break;
                    Model::Entry& entry = entry_of(pin->name);
                    ASSERT_TRUE(covered(entry));
                    ++entry.pins;
                    pins.push_back(std::move(pin));
                    break;
                }
                case 4: {
                    std::size_t still = 0;
                    for (auto& e : model.entries)
                        if (!e.dropped && e.address < address + bytes && address < e.address + e.bytes) {
                            e.dropped = true;
                            still += e.pins > 0;
                        }
                    model.sweep();
                    ASSERT_EQ(cache.invalidate(address, bytes), still);
                    break;
                }
                default:
                    for (int i = 0; i < 3 && !pins.empty(); ++i) {
                        const std::size_t which = random() % pins.size();
                        std::swap(pins[which], pins.back());
                        Model::Entry& entry = entry_of(pins.back()->name);
                        if (--entry.pins == 0) entry.last_use = ++model.clock;
                        pins.pop_back();
                        model.sweep();
                    }
            }
            const auto stats = cache.stats();
            ASSERT_EQ(stats.bytes, model.bytes());
            ASSERT_EQ(stats.pinned_bytes, model.pinned());
            ASSERT_LE(stats.bytes, 200u);
            ASSERT_EQ(static_cast<std::size_t>(live), model.entries.size());
        }
        pins.clear();
        cache.invalidate(0, UINT64_MAX);
        ASSERT_EQ(live, 0);
    }
}

TEST(RegistrationCache, ThreadsShareIt) {
    struct Owned {
        std::unique_ptr<std::uint64_t> value;
    };
    RegistrationCache<Owned> cache(64 * 10);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&cache, t] {
            std::mt19937_64 random(t);
            for (int i = 0; i < 3000; ++i) {
                const std::uint64_t address = random() % 32 * 64;
                auto pin = cache.find(address, 64);
                if (!pin) pin = cache.insert(address, 64, Owned{std::make_unique<std::uint64_t>(address)});
                if (random() % 16 == 0) cache.invalidate(address, 1);
                if (pin) {
                    ASSERT_EQ(*pin->value, address);
                }
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(cache.stats().pinned_bytes, 0u);
}

}  // namespace
}  // namespace offpath::memory
