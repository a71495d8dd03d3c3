// The direct path to the target's proxy: what it carries, and that its operations keep their order relative
// to those that go through the rank's own proxy. Ranks 0 and 1 have different proxies of one daemon.
#include "direct_fixture.h"

#include <array>
#include <numeric>
#include <thread>
#include <vector>

namespace offpath::test {
namespace {

TEST_F(Direct, MovesAndUpdates) {
    for (const std::uint32_t ranks : {2u, 3u, 5u}) {
        on_two_proxies(ranks, [](const Rank& me) {
            Fixture f(me);
            // Two of the three ranks share a proxy, and have no path between them.
            offpath_context_info_t info{};
            info.struct_size = sizeof info;
            expect(offpath_context_query(f.context, &info), OFFPATH_OK, "query");
            auto* const proxies = static_cast<std::uint32_t*>(me.shared) + 512;
            proxies[me.rank] = info.proxy;
            me.barrier();
            const bool path = proxies[me.rank] != proxies[f.right];
            const bool path_to_first = proxies[me.rank] != proxies[0];
            std::uint64_t word = 0;
            if (path) {
                f.open(f.right);
            } else {
                expect(offpath_direct_get(f.window, &word, 8, f.right, 0), OFFPATH_ERR_UNAVAILABLE,
                       "between ranks of one proxy");
            }
            for (const std::size_t bytes : {1, 8, 100, 4096, 8192, 8193, 30000, 65536}) {
                if (!path) break;
                std::vector<unsigned char> data(bytes), back(bytes);
                std::iota(data.begin(), data.end(), static_cast<unsigned char>(me.rank + bytes));
                expect(offpath_direct_put(f.window, data.data(), bytes, f.right, 4096), OFFPATH_OK, "put");
                std::fill(data.begin(), data.end(), 0xee);
                f.flush();
                expect(offpath_direct_get(f.window, back.data(), bytes, f.right, 4096), OFFPATH_OK, "get");
                std::iota(data.begin(), data.end(), static_cast<unsigned char>(me.rank + bytes));
                require(back == data, "what was put is not what is there");
            }
            expect(offpath_direct_put(f.window, f.base, 65537, f.right, 0), OFFPATH_ERR_UNAVAILABLE,
                   "more than goes this way");
            me.barrier();
            // All ranks draw from a counter at rank 0, on both ways.
            constexpr int draws = 300;
            std::array<std::uint64_t, draws> tickets{};
            const std::uint64_t one = 1;
            const offpath_place_t place{0, 8, nullptr, 0};
            if (path_to_first) f.open(0);
            int directly = 0;
            for (int i = 0; i < draws; ++i) {
                std::uint64_t& ticket = tickets[static_cast<std::size_t>(i)];
                offpath_status_t status = OFFPATH_ERR_UNAVAILABLE;
                if (i % 3 != 0)
                    status =
                        offpath_direct_update(f.window, OFFPATH_SUM, &one, &ticket, OFFPATH_UINT64, 0, 8);
                directly += status == OFFPATH_OK;
                if (status == OFFPATH_ERR_UNAVAILABLE) {
                    offpath_request_h request = nullptr;
                    expect(offpath_get_accumulate(f.window, &one, &ticket, 1, OFFPATH_UINT64, OFFPATH_SUM,
                                                  &place, &request),
                           OFFPATH_OK, "get_accumulate");
                    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
                    offpath_request_free(request);
                    status = OFFPATH_OK;
                }
                expect(status, OFFPATH_OK, "update");
                require(i == 0 || ticket > tickets[static_cast<std::size_t>(i - 1)], "order of tickets");
            }
            if (path_to_first) require(directly > draws / 2, "too few took the short way");
            me.barrier();
            if (me.rank == 0) require(f.words()[1] == std::uint64_t{draws} * me.size, "the sum of all draws");
            me.barrier();
            // Every rank swaps the word of its right neighbour from its own number to another one.
            const std::uint64_t from = 0, to = me.rank + 100;
            std::uint64_t was = 7;
            if (path) {
                expect(offpath_direct_compare_swap(f.window, &to, &from, &was, OFFPATH_UINT64, f.right, 16),
                       OFFPATH_OK, "compare_swap");
                require(was == 0, "the former value");
                expect(offpath_direct_compare_swap(f.window, &from, &from, &was, OFFPATH_UINT64, f.right, 16),
                       OFFPATH_OK, "compare_swap that does not match");
                require(was == to, "the former value of the second");
                expect(offpath_direct_update(f.window, OFFPATH_NO_OP, nullptr, &was, OFFPATH_UINT64, f.right,
                                             16),
                       OFFPATH_OK, "fetch");
                require(was == to, "what stays");
                // Malformed and out of range requests change nothing.
                expect(offpath_direct_get(f.window, &was, 8, f.right, window_bytes - 4), OFFPATH_ERR_ACCESS,
                       "get outside");
                expect(f.put(was, window_bytes - 4), OFFPATH_OK, "put outside");
                f.flush(OFFPATH_ERR_ACCESS);
                f.flush();
            }
            expect(offpath_direct_get(f.window, &was, 8, me.size, 0), OFFPATH_ERR_INVALID, "get of nobody");
            f.finish();
        });
    }
}

TEST_F(Direct, DoesNotOvertakeWhatWentByTheOwnProxy) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            const ByOwnProxy by_own(1, 1024, 8);
            const offpath_place_t& place = by_own.place;
            const std::uint64_t word = 5;
            std::uint64_t got = 0;
            offpath_request_h request = nullptr;
            // A put without a request holds others back until it is known to be done. The first of these asks
            // the proxy.
            expect(offpath_put(f.window, &word, 8, &place, nullptr), OFFPATH_OK, "put");
            expect(f.put(word), OFFPATH_ERR_UNAVAILABLE, "put behind a put");
            const offpath_status_t behind = offpath_direct_get(f.window, &got, 8, 1, 1024);
            require(behind == OFFPATH_ERR_UNAVAILABLE || (behind == OFFPATH_OK && got == word),
                    "a get behind a put");
            f.flush();
            expect(f.put(word), OFFPATH_OK, "put behind a flush");
            // A put with a request holds back only what is ordered behind it.
            expect(offpath_put(f.window, &word, 8, &place, &request), OFFPATH_OK, "put");
            expect(f.put(word), OFFPATH_OK, "put beside a put with a request");
            expect(offpath_window_fence(f.window, 1), OFFPATH_OK, "fence");
            expect(f.put(word), OFFPATH_ERR_UNAVAILABLE, "put behind a fence");
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            offpath_request_free(request);
            expect(f.put(word), OFFPATH_OK, "put behind a request that is over");
            f.flush();
            // The fence also holds back what comes behind the operation that it has ordered.
            for (const std::uint32_t fenced : {1U, OFFPATH_ALL_TARGETS}) {
                const pid_t daemon = daemon_of(me);
                stop(daemon);
                offpath_request_h second = nullptr;
                expect(offpath_put(f.window, &word, 8, &place, &request), OFFPATH_OK, "put");
                expect(offpath_window_fence(f.window, fenced), OFFPATH_OK, "fence");
                expect(offpath_put(f.window, &word, 8, &place, &second), OFFPATH_OK, "put behind the fence");
                expect(f.put(word), OFFPATH_ERR_UNAVAILABLE, "put behind what is fenced");
                require(kill(daemon, SIGCONT) == 0, "continue");
                for (offpath_request_h each : {request, second}) {
                    expect(offpath_request_wait(each), OFFPATH_OK, "wait");
                    offpath_request_free(each);
                }
                expect(f.put(word), OFFPATH_OK, "put behind all of them");
                f.flush();
            }
            // Updates keep their order.
            expect(offpath_accumulate(f.window, &word, 1, OFFPATH_UINT64, OFFPATH_SUM, &place, &request),
                   OFFPATH_OK, "accumulate");
            expect(offpath_direct_update(f.window, OFFPATH_SUM, &word, &got, OFFPATH_UINT64, 1, 1024),
                   OFFPATH_ERR_UNAVAILABLE, "update behind an update");
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            offpath_request_free(request);
            expect(offpath_direct_update(f.window, OFFPATH_SUM, &word, &got, OFFPATH_UINT64, 1, 1024),
                   OFFPATH_OK, "update behind one that is over");
            require(got == 10, "the former value");
        }
        f.finish();
    });
}

TEST_F(Direct, MovesStridedElements) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            std::vector<std::byte> sent(10000), got(sent.size());
            for (std::size_t i = 0; i < sent.size(); ++i)
                sent[i] = static_cast<std::byte>(1 + i % 251);
            // The elements fit into one request or need two.
            for (const std::size_t element : {2, 4, 8, 10, 48}) {
                for (const std::size_t stride : {element, element + 3, 5 * element}) {
                    const std::size_t count = sent.size() / element, begin = 4096;
                    std::vector<std::byte> all(count * stride), expected(all.size());
                    for (std::size_t i = 0; i < count; ++i)
                        std::memcpy(&expected[i * stride], &sent[i * element], element);
                    expect(offpath_direct_put(f.window, all.data(), all.size(), 1, begin), OFFPATH_OK,
                           "zeros");
                    f.flush();
                    expect(
                        offpath_direct_put_strided(f.window, sent.data(), element, count, stride, 1, begin),
                        OFFPATH_OK, "put");
                    f.flush();
                    expect(offpath_direct_get(f.window, all.data(), all.size(), 1, begin), OFFPATH_OK, "get");
                    require(all == expected, "elements at their places, and nothing between them");
                    std::fill(got.begin(), got.end(), std::byte{0});
                    expect(offpath_direct_get_strided(f.window, got.data(), element, count, stride, 1, begin),
                           OFFPATH_OK, "get");
                    require(std::memcmp(got.data(), sent.data(), count * element) == 0, "the same elements");
                }
            }
            // The last element leaves the window, or the layout is invalid.
            const auto get = [&](std::size_t element, std::size_t count, std::size_t stride) {
                return offpath_direct_get_strided(f.window, got.data(), element, count, stride, 1, 0);
            };
            expect(get(8, 3, window_bytes / 2), OFFPATH_ERR_ACCESS, "outside");
            expect(get(8, 3, 7), OFFPATH_ERR_INVALID, "elements that overlap");
            expect(get(0, 3, 7), OFFPATH_ERR_INVALID, "elements of nothing");
            expect(get(1, 8193, 1), OFFPATH_ERR_UNAVAILABLE, "too many");
            expect(get(1, 100, SIZE_MAX / 2), OFFPATH_ERR_UNAVAILABLE, "further than memory");
        }
        f.finish();
    });
}

// A program may never flush between its puts and its gets.
TEST_F(Direct, ComesBackWithoutAFlush) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            const ByOwnProxy by_own(1, 1024, 8);
            const offpath_place_t& place = by_own.place;
            for (std::uint64_t word = 1; word <= 3; ++word) {
                expect(offpath_put(f.window, &word, 8, &place, nullptr), OFFPATH_OK, "put");
                std::uint64_t got = 0;
                const double begin = now();
                while (offpath_direct_get(f.window, &got, 8, 1, 1024) != OFFPATH_OK)
                    require(now() - begin < 10, "no direct operation any more");
                require(got == word, "what was put before");
            }
            // The program's own flush reports an error of a put, even if the library flushed before.
            const std::uint64_t word = 9;
            const ByOwnProxy outside(1, window_bytes, 8);
            std::uint64_t got = 0;
            expect(offpath_put(f.window, &word, 8, &outside.place, nullptr), OFFPATH_OK, "put outside");
            (void)offpath_direct_get(f.window, &got, 8, 1, 1024);
            usleep(50000);
            f.flush(OFFPATH_ERR_ACCESS);
            f.flush();
        }
        f.finish();
    });
}

TEST_F(Direct, IsNotOvertakenByWhatGoesByTheOwnProxy) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            const ByOwnProxy by_own(1, 1024, 8);
            const offpath_place_t& place = by_own.place;
            const std::uint64_t word = 5;
            const auto direct = [&] { expect(f.put(word), OFFPATH_OK, "put"); };
            const auto later = [&] {
                expect(offpath_put(f.window, &word, 8, &place, nullptr), OFFPATH_OK, "put");
            };
            require(!waits_for_long(me, direct, later), "a put that needs no order waits");
            f.flush();
            const auto fenced = [&] {
                direct();
                expect(offpath_window_fence(f.window, OFFPATH_ALL_TARGETS), OFFPATH_OK, "fence");
            };
            require(waits(me, fenced, later),
                    "a put behind a fence does not wait for the direct one before it");
            f.flush();
            const auto update = [&] {
                expect(offpath_direct_update(f.window, OFFPATH_SUM, &word, nullptr, OFFPATH_UINT64, 1, 8),
                       OFFPATH_OK, "update");
            };
            const auto accumulate = [&] {
                expect(offpath_accumulate(f.window, &word, 1, OFFPATH_UINT64, OFFPATH_SUM, &place, nullptr),
                       OFFPATH_OK, "accumulate");
            };
            require(waits(me, update, accumulate), "an update does not wait for the direct one before it");
            f.flush();
            // A flush waits for both ways, even if it is a request.
            require(waits(me, direct, [&] { f.flush(); }), "the flush does not wait");
            const auto flush_by_request = [&] {
                offpath_request_h request = nullptr;
                expect(offpath_window_flush(f.window, 1, &request), OFFPATH_OK, "flush");
                expect(offpath_request_wait(request), OFFPATH_OK, "wait");
                offpath_request_free(request);
            };
            require(waits(me, direct, flush_by_request), "the flush by request does not wait");
        }
        f.finish();
    });
}

TEST_F(Direct, ManyGoByTheOwnProxy) {
    on_two_proxies(2, [](const Rank& me) {
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            int taken = 0;
            (void)waits(
                me,
                [&] {
                    while (taken < 1000 && f.put(1) == OFFPATH_OK)
                        ++taken;
                },
                [] {});
            require(taken > 1 && taken < 100, "a bounded number is under way");
            usleep(20000);
            expect(f.put(1), OFFPATH_ERR_UNAVAILABLE, "put when they are done, and nobody has waited");
            f.flush();
            expect(f.put(1), OFFPATH_OK, "put behind a flush");
            f.flush();
        }
        f.finish();
    });
}

// A flag follows data, in all mixtures of the two ways.
TEST_F(Direct, FlagsComeBehindData) {
    on_two_proxies(3, [](const Rank& me) {
        Fixture f(me);
        constexpr std::size_t count = 25000;
        std::vector<std::uint32_t> data(count);
        auto* const there = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(f.base) + 4096);
        for (std::uint64_t round = 1; round <= 60; ++round) {
            std::fill(data.begin(), data.end(), static_cast<std::uint32_t>(round));
            const std::size_t used = round % 2 == 0 ? count : 1000;
            const auto by_proxy = [&](const void* from, std::size_t bytes, std::uint64_t offset) {
                const ByOwnProxy to(f.right, offset, bytes);
                expect(offpath_put(f.window, from, bytes, &to.place, nullptr), OFFPATH_OK, "put");
            };
            if (used == count ||
                offpath_direct_put(f.window, data.data(), used * 4, f.right, 4096) != OFFPATH_OK)
                by_proxy(data.data(), used * 4, 4096);
            expect(offpath_window_fence(f.window, f.right), OFFPATH_OK, "fence");
            if (round % 3 == 0 || f.put(round) != OFFPATH_OK) by_proxy(&round, 8, 64);
            const double begin = now();
            while (__atomic_load_n(f.words() + 8, __ATOMIC_ACQUIRE) != round) {
                require(now() - begin < 30, "the flag does not come");
                sched_yield();
            }
            for (std::size_t i = 0; i < used; ++i)
                require(there[i] == round, "the flag overtook the data");
            f.flush();
            me.barrier();
        }
        f.finish();
    });
}

TEST_F(Direct, RefusesMemoryThatIsNotMapped) {
    on_two_proxies(2, [](const Rank& me) {
        offpath_context_h context = me.init();
        std::uint64_t memory = 3;
        offpath_window_h window = nullptr;
        expect(offpath_window_create(me.world(context), &memory, 8, &window), OFFPATH_OK, "create");
        std::uint64_t got = 0;
        for (int i = 0; i < 1000; ++i) {
            expect(offpath_direct_get(window, &got, 8, 1 - me.rank, 0), OFFPATH_ERR_UNAVAILABLE, "get");
            usleep(10);
        }
        require(got == 0 && memory == 3, "nothing happens");
        me.barrier();
        expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
}

TEST_F(Direct, TellsThatTheProxyIsGone) {
    ends_with_the_proxy([](Fixture& f) { expect(f.put(1), OFFPATH_OK, "put"); },
                        [](Fixture& f) {
                            std::uint64_t word = 0;
                            expect(offpath_direct_get(f.window, &word, 8, 1, 0), OFFPATH_ERR_UNAVAILABLE,
                                   "get after that");
                        });
}

TEST_F(Direct, ThreadsShareAPath) {
    on_two_proxies(
        2,
        [](const Rank& me) {
            Fixture f(me);
            f.open(f.right);
            me.barrier();
            constexpr int each = 500;
            std::vector<std::thread> threads;
            for (int t = 0; t < 3; ++t)
                threads.emplace_back([&] {
                    const std::uint64_t one = 1;
                    std::uint64_t last = 0;
                    for (int i = 0; i < each; ++i) {
                        std::uint64_t was = 0;
                        const offpath_status_t status = offpath_direct_update(
                            f.window, OFFPATH_SUM, &one, &was, OFFPATH_UINT64, f.right, 8);
                        expect(status, OFFPATH_OK, "update");
                        require(i == 0 || was > last, "a thread's own order");
                        last = was;
                    }
                });
            for (std::thread& thread : threads)
                thread.join();
            me.barrier();
            require(f.words()[1] == 3 * each, "the sum");
            f.finish();
        },
        OFFPATH_THREADS_MULTIPLE);
}

// Fixture::open needs a direct path.
TEST_F(Direct, MovesAndUpdatesEncrypted) {
    const auto body = [](const Rank& me) {
        Fixture f(me);
        f.open(f.right);
        constexpr std::uint64_t words = 32;
        std::vector<std::uint64_t> sent(words), got(words);
        for (std::uint64_t i = 0; i < words; ++i)
            sent[i] = i << me.rank;
        expect(offpath_direct_put(f.window, sent.data(), 8 * words, f.right, 4096), OFFPATH_OK, "put");
        f.flush();
        for (std::uint64_t i = 0; i < 100; ++i) {
            expect(f.put(i, 64 + 8 * i), OFFPATH_OK, "put");
            f.flush();
        }
        expect(offpath_direct_get(f.window, got.data(), 8 * words, f.right, 4096), OFFPATH_OK, "get");
        require(got == sent, "what was put is there");
        const std::uint64_t two = 2;
        std::uint64_t was = 9;
        expect(offpath_direct_update(f.window, OFFPATH_SUM, &two, &was, OFFPATH_UINT64, f.right, 8),
               OFFPATH_OK, "update");
        require(was == 0, "the value before");
        me.barrier();
        require(f.words()[1] == 2 && f.words()[8 + 99] == 99, "the values of the left one");
        f.finish();
    };
    EXPECT_TRUE(on_two_proxies(2, body, OFFPATH_THREADS_SINGLE, true));
}

TEST_F(Direct, CanBeOff) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--proxies", "2", "--direct", "off"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        Fixture f(me);
        std::uint64_t word = 0;
        for (int i = 0; i < 100; ++i) {
            expect(offpath_direct_get(f.window, &word, 8, f.right, 0), OFFPATH_ERR_UNAVAILABLE, "get");
            usleep(100);
        }
        f.finish();
    })) << daemon.log();
}

}  // namespace
}  // namespace offpath::test
