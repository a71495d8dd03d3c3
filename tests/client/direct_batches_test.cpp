// Operations that take the direct path by themselves: small ones without a request, few between flushes as
// separate messages, many together. On every path, results, order and errors are the same.
#include "direct_fixture.h"

#include <numeric>
#include <thread>
#include <vector>

namespace offpath::test {
namespace {

std::uint64_t by_short_way(offpath_context_h context) {
    offpath_context_counters_t counters{};
    counters.struct_size = sizeof counters;
    expect(offpath_context_counters(context, &counters), OFFPATH_OK, "counters");
    return counters.direct;
}

constexpr std::uint64_t base_offset = 4096, room = 64 << 10;

// `count` operations of `bytes` each, side by side, from rank 0 to rank 1.
struct Batch {
    Batch(const Fixture& fixture, std::size_t count_, std::size_t bytes_)
        : f(fixture), count(count_), bytes(bytes_), data(count_ * bytes_), back(data.size()) {}
    offpath_place_t at(std::size_t i) const { return {1, base_offset + i * bytes, nullptr, 0}; }
    void put() {
        for (std::size_t i = 0; i < count; ++i) {
            const offpath_place_t place = at(i);
            expect(offpath_put(f.window, &data[i * bytes], bytes, &place, nullptr), OFFPATH_OK, "put");
        }
    }
    void get() {
        for (std::size_t i = 0; i < count; ++i) {
            const offpath_place_t place = at(i);
            expect(offpath_get(f.window, &back[i * bytes], bytes, &place, nullptr), OFFPATH_OK, "get");
        }
    }
    const Fixture& f;
    std::size_t count, bytes;
    std::vector<std::byte> data, back;
};

TEST_F(Direct, MovesBatchesOfAllSizes) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            unsigned seed = 1;
            for (int round = 0; round < 3; ++round)
                for (const std::size_t bytes : {1, 8, 100, 1000, 1024, 1025, 5000, 9000, 60000})
                    for (const std::size_t count : {1, 3, 4, 5, 9, 64, 200}) {
                        if (count * bytes > window_bytes - base_offset) continue;
                        Batch batch(f, count, bytes);
                        for (std::byte& each : batch.data)
                            each = static_cast<std::byte>((seed = seed * 1103515245 + 12345) >> 16);
                        batch.put();
                        f.flush();
                        batch.get();
                        offpath_request_h request = nullptr;
                        expect(offpath_window_flush(f.window, 1, &request), OFFPATH_OK, "flush");
                        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
                        offpath_request_free(request);
                        require(batch.back == batch.data, "what was put is what is got");
                    }
        }
        f.finish();
    });
}

TEST_F(Direct, TakesTheShortWayByItself) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            const auto taken = [&](std::size_t count, std::size_t bytes) {
                const std::uint64_t before = by_short_way(f.context);
                Batch batch(f, count, bytes);
                batch.put();
                f.flush();
                return by_short_way(f.context) - before;
            };
            require(taken(1, 8) == 1 && taken(3, 5000) == 3, "a few, small or not");
            require(taken(64, 8) == 64, "many small ones");
            require(taken(64, 5000) <= 4 && taken(64, 5000) == 0, "many larger ones are the device's");
            require(taken(1, 100000) == 0, "one that is too large");
            Batch listed(f, 1, 8);
            const ByOwnProxy place(1, base_offset, 8);
            const std::uint64_t before = by_short_way(f.context);
            expect(offpath_put(f.window, listed.data.data(), 8, &place.place, nullptr), OFFPATH_OK, "put");
            f.flush();
            require(by_short_way(f.context) == before, "a list of segments");
        }
        f.finish();
    });
}

// Updates of one element take effect in the order in which they were started, whatever comes between.
TEST_F(Direct, KeepsUpdatesOfABatchInOrder) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            const offpath_place_t place{1, base_offset, nullptr, 0}, far{1, base_offset + room, nullptr, 0};
            std::vector<std::byte> large(30000);
            std::uint64_t expected = 0;
            for (int round = 0; round < 40; ++round) {
                constexpr std::size_t count = 50;
                std::vector<std::uint64_t> before(count), wanted(count);
                for (std::size_t i = 0; i < count; ++i) {
                    const std::uint64_t operand = i + 2;
                    wanted[i] = expected;
                    offpath_status_t status = OFFPATH_OK;
                    if (i % 3 == 0) {
                        status = offpath_get_accumulate(f.window, &operand, &before[i], 1, OFFPATH_UINT64,
                                                        OFFPATH_SUM, &place, nullptr);
                        expected += operand;
                    } else if (i % 3 == 1) {
                        status = offpath_get_accumulate(f.window, &operand, &before[i], 1, OFFPATH_UINT64,
                                                        OFFPATH_REPLACE, &place, nullptr);
                        expected = operand;
                    } else {
                        status = offpath_compare_swap(f.window, &wanted[0], &operand, &before[i],
                                                      OFFPATH_UINT64, 1, base_offset, nullptr);
                        if (expected == operand) expected = wanted[0];
                    }
                    expect(status, OFFPATH_OK, "update");
                    // This one goes through the own proxy. No later update may overtake it on the short way.
                    if (round % 4 == 3 && i == 20)
                        expect(offpath_accumulate(f.window, large.data(), large.size() / 8, OFFPATH_UINT64,
                                                  OFFPATH_SUM, &far, nullptr),
                               OFFPATH_OK, "a large one");
                }
                f.flush();
                require(before == wanted, "what each update found");
            }
        }
        f.finish();
    });
}

// Only whole elements change, even where the operands of an update are cut.
TEST_F(Direct, UpdatesManyElements) {
    on_two_proxies(3, [](const Rank& me) {
        Fixture f(me);
        constexpr std::size_t count = 5000;
        if (me.rank != 0) {
            std::vector<float> ones(count);
            std::iota(ones.begin(), ones.end(), 1.0F);
            const offpath_place_t place{0, base_offset + 4, nullptr, 0};
            for (int i = 0; i < 20; ++i) {
                expect(offpath_accumulate(f.window, ones.data(), count, OFFPATH_FLOAT32, OFFPATH_SUM, &place,
                                          nullptr),
                       OFFPATH_OK, "accumulate");
                f.flush();
            }
        }
        me.barrier();
        if (me.rank == 0)
            for (std::size_t i = 0; i < count; ++i) {
                float sum = 0;
                std::memcpy(&sum, static_cast<std::byte*>(f.base) + base_offset + 4 + i * 4, 4);
                require(sum == 40.0F * static_cast<float>(i + 1), "the sum of an element");
            }
        me.barrier();
        f.finish();
    });
}

TEST_F(Direct, TellsErrorsOfABatch) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            for (const std::size_t wrong : {std::size_t{1}, std::size_t{7}, std::size_t{31}}) {
                std::vector<std::uint64_t> got(40, 77);
                std::uint64_t word = wrong;
                for (std::size_t i = 0; i < got.size(); ++i) {
                    const std::uint64_t offset = i == wrong ? window_bytes - 4 : base_offset + 8 * i;
                    const offpath_place_t place{1, offset, nullptr, 0};
                    expect(offpath_put(f.window, &word, 8, &place, nullptr), OFFPATH_OK, "put");
                    expect(offpath_get(f.window, &got[i], 8, &place, nullptr), OFFPATH_OK, "get");
                }
                f.flush(OFFPATH_ERR_ACCESS);
                f.flush();
                for (std::size_t i = 0; i < got.size(); ++i)
                    require(got[i] == (i == wrong ? 77 : word), "the others are done");
            }
        }
        f.finish();
    });
}

// Only a bounded number of results wait in the sockets, in the path's books and at the device.
TEST_F(Direct, StartsVeryManyWithoutAFlush) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            Batch batch(f, 1000, 1000);
            std::iota(reinterpret_cast<std::uint16_t*>(batch.data.data()),
                      reinterpret_cast<std::uint16_t*>(batch.data.data() + batch.data.size()),
                      std::uint16_t{0});
            batch.put();
            f.flush();
            for (int i = 0; i < 30; ++i) {
                batch.put();
                batch.get();
            }
            f.flush();
            require(batch.back == batch.data, "what is got");
        }
        f.finish();
    });
}

// Only the holder of the lock changes this number, by put and get. Locks and unlocks take both ways.
TEST_F(Direct, LocksExclude) {
    on_two_proxies(3, [](const Rank& me) {
        Fixture f(me);
        constexpr std::uint64_t rounds = 150;
        const offpath_place_t place{0, base_offset, nullptr, 0};
        int directly = 0;
        for (std::uint64_t i = 0; i < rounds; ++i) {
            offpath_status_t status = OFFPATH_ERR_UNAVAILABLE;
            if (i % 4 != 0) status = offpath_direct_lock(f.window, 0, OFFPATH_LOCK_EXCLUSIVE);
            directly += status == OFFPATH_OK;
            if (status == OFFPATH_ERR_UNAVAILABLE)
                status = offpath_window_lock(f.window, 0, OFFPATH_LOCK_EXCLUSIVE, nullptr);
            expect(status, OFFPATH_OK, "lock");
            std::uint64_t word = 0;
            expect(offpath_get(f.window, &word, 8, &place, nullptr), OFFPATH_OK, "get");
            f.flush();
            ++word;
            expect(offpath_put(f.window, &word, 8, &place, nullptr), OFFPATH_OK, "put");
            f.flush();
            expect(offpath_window_unlock(f.window, 0), OFFPATH_OK, "unlock");
            if (i % 10 == me.rank) usleep(300);
        }
        f.flush();
        me.barrier();
        if (me.rank == 0) require(f.words()[base_offset / 8] == rounds * me.size, "nobody else was in it");
        me.barrier();
        // Rank 1 and then rank 2 is alone, so its locks at rank 0 are free. One of the two has another proxy.
        for (std::uint32_t rank = 1; rank < me.size; ++rank) {
            if (me.rank == rank)
                for (int i = 0; i < 100; ++i) {
                    const offpath_status_t status = offpath_direct_lock(f.window, 0, OFFPATH_LOCK_SHARED);
                    if (status == OFFPATH_ERR_UNAVAILABLE) continue;
                    expect(status, OFFPATH_OK, "lock");
                    ++directly;
                    expect(offpath_direct_lock(f.window, 0, OFFPATH_LOCK_SHARED), OFFPATH_ERR_INVALID,
                           "what this rank has");
                    expect(offpath_window_unlock(f.window, 0), OFFPATH_OK, "unlock");
                }
            f.flush();
            me.barrier();
        }
        auto* const counts = static_cast<int*>(me.shared) + 700;
        counts[me.rank] = directly;
        me.barrier();
        require(counts[0] + counts[1] + counts[2] > 50, "some locks take the short way");
        expect(offpath_direct_lock(f.window, me.size, OFFPATH_LOCK_SHARED), OFFPATH_ERR_INVALID, "nobody's");
        f.finish();
    });
}

TEST_F(Direct, ALockThatIsHeldIsRefusedAtOnce) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 1)
            expect(offpath_window_lock(f.window, 1, OFFPATH_LOCK_EXCLUSIVE, nullptr), OFFPATH_OK, "lock");
        me.barrier();
        offpath_request_h waiting = nullptr;
        if (me.rank == 0) {
            f.open(1);
            expect(offpath_direct_lock(f.window, 1, OFFPATH_LOCK_SHARED), OFFPATH_ERR_UNAVAILABLE, "lock");
            expect(offpath_window_lock(f.window, 1, OFFPATH_LOCK_SHARED, &waiting), OFFPATH_OK, "lock");
            usleep(20000);
            expect(offpath_request_test(waiting), OFFPATH_IN_PROGRESS, "a lock that another holds");
        }
        me.barrier();
        if (me.rank == 1) expect(offpath_window_unlock(f.window, 1), OFFPATH_OK, "unlock");
        if (me.rank == 0) {
            expect(offpath_request_wait(waiting), OFFPATH_OK, "the lock");
            offpath_request_free(waiting);
            expect(offpath_window_unlock(f.window, 1), OFFPATH_OK, "unlock");
            // The lock is not held. The next flush reports that.
            f.flush();
            expect(offpath_window_unlock(f.window, 1), OFFPATH_OK, "unlock of what is not held");
            f.flush(OFFPATH_ERR_INVALID);
        }
        f.finish();
    });
}

// The short way is open, and small operations have been many. So the next ones wait to travel together.
void make_many(const Fixture& f) {
    f.open(1);
    Batch(f, 64, 8).put();
    f.flush();
}

// What the other rank waits for may be in a bundle.
TEST_F(Direct, AWaitSendsWhatWaitsToTravelTogether) {
    for (const bool tests : {false, true})
        on_two_proxies(2, [tests](const Rank& me) {
            Fixture f(me);
            offpath_request_h request = nullptr;
            if (me.rank == 0) {
                make_many(f);
                Batch batch(f, 6, 8);
                std::ranges::fill(batch.data, std::byte{7});
                batch.put();
            } else {
                const volatile std::byte* const last = static_cast<std::byte*>(f.base) + base_offset + 47;
                for (const double begin = now(); *last != std::byte{7}; usleep(100))
                    require(now() - begin < 30, "what was put does not come");
            }
            expect(offpath_ibarrier(me.world(f.context), &request), OFFPATH_OK, "barrier");
            while (tests && offpath_request_test(request) == OFFPATH_IN_PROGRESS)
                usleep(100);
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            offpath_request_free(request);
            f.flush();
            f.finish();
        });
}

// Another thread starts operations while a flush waits, and waits for its end before it flushes itself.
TEST_F(Direct, AFlushDoesNotWaitForWhatOtherThreadsStartMeanwhile) {
    on_two_proxies(
        2,
        [](const Rank& me) {
            Fixture f(me);
            if (me.rank == 0) {
                make_many(f);
                Batch batch(f, 6, 8);
                const pid_t daemon = daemon_of(me);
                stop(daemon);
                batch.put();
                std::atomic<bool> flushes = false;
                std::thread other([&] {
                    flushes = true;
                    f.flush();
                });
                while (!flushes)
                    usleep(100);
                usleep(50'000);
                batch.put();
                require(kill(daemon, SIGCONT) == 0, "continue");
                other.join();
                f.flush();
            }
            f.finish();
        },
        OFFPATH_THREADS_MULTIPLE);
}

TEST_F(Direct, BatchesEndWithTheProxy) {
    ends_with_the_proxy([](Fixture& f) { Batch(f, 100, 100).put(); }, [](Fixture&) {});
}

}  // namespace
}  // namespace offpath::test
