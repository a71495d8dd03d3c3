// Basic and group primitives and collectives, through the C API, a daemon and real processes.
#include "harness.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

namespace offpath::test {
namespace {

class Primitives : public testing::TestWithParam<std::uint32_t> {
  protected:
    void SetUp() override { ASSERT_TRUE(daemon.ready()) << daemon.log(); }
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path(), {"--proxies", std::to_string(GetParam())}};
};
INSTANTIATE_TEST_SUITE_P(Proxies, Primitives, testing::Values(1, 2));

void done(offpath_request_h request, offpath_status_t wanted = OFFPATH_OK) {
    expect(offpath_request_wait(request), wanted, "wait");
    expect(offpath_request_test(request), wanted, "test after wait");
    expect(offpath_request_free(request), OFFPATH_OK, "free");
}

offpath_request_h start_send(offpath_team_h team, const void* data, std::size_t bytes, std::uint32_t dest,
                             std::uint32_t tag) {
    offpath_request_h request = nullptr;
    expect(offpath_send_offload(team, data, bytes, dest, tag, &request), OFFPATH_OK, "send_offload");
    return request;
}

offpath_request_h start_recv(offpath_team_h team, void* data, std::size_t bytes, std::uint32_t source,
                             std::uint32_t tag) {
    offpath_request_h request = nullptr;
    expect(offpath_recv_offload(team, data, bytes, source, tag, &request), OFFPATH_OK, "recv_offload");
    return request;
}

TEST_P(Primitives, MatchByTagInOrderAndByWildcard) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<int> data{1, 2, 3, 4};
        if (me.rank == 0) {
            std::vector<offpath_request_h> sends;
            for (std::uint32_t tag : {7u, 8u, 7u, 9u})
                sends.push_back(start_send(world, &data[sends.size()], sizeof(int), 1, tag));
            for (offpath_request_h request : sends)
                done(request);
        } else {
            int got[4] = {};
            const auto eight = start_recv(world, &got[1], sizeof(int), 0, 8);
            const auto first = start_recv(world, &got[0], sizeof(int), OFFPATH_ANY_SOURCE, 7);
            const auto second = start_recv(world, &got[2], sizeof(int), 0, 7);
            const auto any = start_recv(world, &got[3], sizeof(int), OFFPATH_ANY_SOURCE, OFFPATH_ANY_TAG);
            expect(offpath_request_wait(any), OFFPATH_OK, "wait for the wildcard");
            offpath_message_t message;
            expect(offpath_request_message(any, &message), OFFPATH_OK, "message");
            require(message.source == 0 && message.tag == 9 && message.bytes == sizeof(int), "its facts");
            for (offpath_request_h request : {eight, first, second, any})
                done(request);
            for (int i = 0; i < 4; ++i)
                require(got[i] == i + 1, "message " + std::to_string(i));
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Primitives, ReceiveFromSomeOfTheRanks) {
    EXPECT_TRUE(all_right(4, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        offpath_request_h even = nullptr, pair = nullptr, any = nullptr;
        if (me.rank == 0) {
            std::uint32_t from_even = 9, from_pair = 9, from_any = 9;
            offpath_message_t message;
            const auto source_of = [&](offpath_request_h request) {
                expect(offpath_request_wait(request), OFFPATH_OK, "wait");
                expect(offpath_request_message(request, &message), OFFPATH_OK, "message");
                offpath_request_free(request);
                return message.source;
            };
            expect(offpath_recv_masked(world, &from_even, 4, 0, 1, 5, &even), OFFPATH_OK, "even ranks");
            expect(offpath_recv_masked(world, &from_pair, 4, 2, ~1u, 5, &pair), OFFPATH_OK, "2 or 3");
            expect(offpath_recv_masked(world, &from_any, 4, 3, 0, 5, &any), OFFPATH_OK, "any rank");
            done(start_send(world, nullptr, 0, 1, 1));
            require(source_of(any) == 1 && from_any == 1, "rank 1 meets the last receive only");
            done(start_send(world, nullptr, 0, 3, 1));
            require(source_of(pair) == 3 && from_pair == 3, "rank 3 meets the second receive");
            done(start_send(world, nullptr, 0, 2, 1));
            require(source_of(even) == 2 && from_even == 2, "rank 2 meets the first");
            expect(offpath_recv_masked(world, &from_any, 4, 4, 1, 5, &any), OFFPATH_ERR_INVALID, "rank 4");
        } else {
            done(start_recv(world, nullptr, 0, 0, 1));
            done(start_send(world, &me.rank, 4, 0, 5));
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Primitives, FindMessagesByProbesAndLeaveThem) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> data(100000, 'x');
        if (me.rank == 0) {
            offpath_request_h probe = nullptr, waiting = nullptr;
            expect(offpath_probe(world, 1, UINT32_MAX, 6, 0, &probe), OFFPATH_OK, "probe");
            done(probe, OFFPATH_ERR_CANCELED);
            expect(offpath_probe(world, OFFPATH_ANY_SOURCE, UINT32_MAX, 6, 1, &waiting), OFFPATH_OK, "probe");
            done(start_send(world, nullptr, 0, 1, 1));
            const auto check = [&](offpath_request_h found) {
                offpath_message_t message;
                expect(offpath_request_wait(found), OFFPATH_OK, "wait");
                expect(offpath_request_message(found, &message), OFFPATH_OK, "message");
                require(message.source == 1 && message.tag == 6 && message.bytes == data.size(), "its facts");
                offpath_request_free(found);
            };
            check(waiting);
            expect(offpath_probe(world, 1, UINT32_MAX, OFFPATH_ANY_TAG, 0, &probe), OFFPATH_OK, "again");
            check(probe);
            std::vector<char> got(data.size());
            done(start_recv(world, got.data(), got.size(), 1, 6));
            require(got == data, "the message was still there");
            expect(offpath_probe(world, 1, UINT32_MAX, 6, 0, &probe), OFFPATH_OK, "probe");
            done(probe, OFFPATH_ERR_CANCELED);
        } else {
            done(start_recv(world, nullptr, 0, 0, 1));
            done(start_send(world, data.data(), data.size(), 0, 6));
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Primitives, ReportTruncationAndShortMessages) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> data(300000, static_cast<char>(me.rank + 1));
        if (me.rank == 0) {
            const auto a = start_send(world, data.data(), data.size(), 1, 1);
            const auto b = start_send(world, data.data(), 1000, 1, 2);
            const auto c = start_send(world, data.data(), 0, 1, 3);
            offpath_request_wait(a);
            offpath_request_free(a);
            done(b);
            done(c);
        } else {
            done(start_recv(world, data.data(), 1000, 0, 1), OFFPATH_ERR_TRUNCATED);
            const auto b = start_recv(world, data.data(), data.size(), 0, 2);
            const auto c = start_recv(world, data.data(), data.size(), 0, 3);
            offpath_message_t message;
            expect(offpath_request_wait(b), OFFPATH_OK, "wait");
            expect(offpath_request_message(b, &message), OFFPATH_OK, "message");
            require(message.bytes == 1000 && data[999] == 1 && data[1000] == 2, "the short message");
            expect(offpath_request_wait(c), OFFPATH_OK, "wait");
            expect(offpath_request_message(c, &message), OFFPATH_OK, "message");
            require(message.bytes == 0, "the empty message");
            done(b);
            done(c);
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// There are more operations at once than completion slots, and handles are given back before the end.
TEST_P(Primitives, OutgrowTheCompletionTable) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        constexpr std::uint32_t count = 6000;
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<std::uint32_t> data(count);
        std::vector<offpath_request_h> requests;
        for (std::uint32_t i = 0; i < count; ++i) {
            data[i] = me.rank == 0 ? i * 3 : 0;
            const auto request =
                me.rank == 0 ? start_send(world, &data[i], 4, 1, i) : start_recv(world, &data[i], 4, 0, i);
            if (i % 2 == 0) {
                expect(offpath_request_free(request), OFFPATH_OK, "free before the end");
            } else {
                requests.push_back(request);
            }
        }
        for (offpath_request_h request : requests)
            done(request);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        for (std::uint32_t i = 0; i < count; ++i)
            require(data[i] == i * 3, "word " + std::to_string(i));
    }));
}

TEST_P(Primitives, RunGroupsWithManyBuffersAndBarriers) {
    EXPECT_TRUE(all_right(3, directory.path(), [](const Rank& me) {
        constexpr std::uint32_t pieces = 2000;  // more than one record of buffers
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        const std::uint32_t right = (me.rank + 1) % me.size, left = (me.rank + me.size - 1) % me.size;
        std::vector<std::uint32_t> out(pieces), in(pieces), onward(pieces);
        offpath_group_h group = nullptr;
        expect(offpath_group_create(world, &group), OFFPATH_OK, "create");
        for (std::uint32_t i = 0; i < pieces; ++i) {
            expect(offpath_group_send(group, &out[i], 4, right, i % 3), OFFPATH_OK, "send");
            expect(offpath_group_recv(group, &in[i], 4, left, i % 3), OFFPATH_OK, "recv");
        }
        // Data from the left are passed on to the right. After two steps every rank has the data of the rank
        // two places to its left.
        expect(offpath_group_barrier(group), OFFPATH_OK, "barrier");
        expect(offpath_group_send(group, in.data(), pieces * 4, right, 5), OFFPATH_OK, "send");
        expect(offpath_group_recv(group, onward.data(), pieces * 4, left, 5), OFFPATH_OK, "recv");
        expect(offpath_group_start(group), OFFPATH_ERR_INVALID, "start before the end of recording");
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        expect(offpath_group_send(group, out.data(), 4, right, 0), OFFPATH_ERR_INVALID, "send after it");
        expect(offpath_group_wait(group), OFFPATH_OK, "wait before any start");
        const auto value = [](std::uint32_t rank, std::uint32_t round, std::uint32_t i) {
            return rank << 28 | round << 20 | i;
        };
        for (std::uint32_t round = 0; round < 5; ++round) {
            for (std::uint32_t i = 0; i < pieces; ++i)
                out[i] = value(me.rank, round, i);
            expect(offpath_group_start(group), OFFPATH_OK, "start");
            expect(offpath_group_wait(group), OFFPATH_OK, "wait");
            const std::uint32_t second = (left + me.size - 1) % me.size;
            for (std::uint32_t i = 0; i < pieces; ++i)
                require(in[i] == value(left, round, i) && onward[i] == value(second, round, i), "contents");
        }
        expect(offpath_group_destroy(group), OFFPATH_OK, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Primitives, RefuseWrongArguments) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context), team = nullptr;
        int word = 0;
        offpath_request_h request = nullptr;
        expect(offpath_send_offload(world, &word, 4, 2, 0, &request), OFFPATH_ERR_INVALID, "rank too large");
        expect(offpath_send_offload(world, &word, 4, 0, OFFPATH_ANY_TAG, &request), OFFPATH_ERR_INVALID,
               "tag");
        expect(offpath_send_offload(world, nullptr, 4, 0, 0, &request), OFFPATH_ERR_INVALID, "no buffer");
        expect(offpath_send_offload(nullptr, &word, 4, 0, 0, &request), OFFPATH_ERR_INVALID, "no team");
        expect(offpath_ibcast(world, &word, 4, 2, &request), OFFPATH_ERR_INVALID, "root");
        expect(offpath_ialltoall(world, &word, nullptr, 4, &request), OFFPATH_ERR_INVALID, "no buffer");
        expect(offpath_ialltoall(world, &word, &word, SIZE_MAX, &request), OFFPATH_ERR_INVALID, "too large");
        expect(offpath_request_wait(nullptr), OFFPATH_ERR_INVALID, "no request");
        const std::uint32_t twice[] = {me.rank, me.rank}, other[] = {1 - me.rank}, beyond[] = {me.rank, 7};
        expect(offpath_team_create(context, twice, 2, 1, &team), OFFPATH_ERR_INVALID, "rank twice");
        expect(offpath_team_create(context, other, 1, 1, &team), OFFPATH_ERR_INVALID, "not a member");
        expect(offpath_team_create(context, beyond, 2, 1, &team), OFFPATH_ERR_INVALID, "rank beyond");
        expect(offpath_team_create(context, twice, 0, 1, &team), OFFPATH_ERR_INVALID, "empty");
        expect(offpath_team_create(context, twice, 1, UINT64_MAX, &team), OFFPATH_ERR_INVALID, "reserved id");
        expect(offpath_team_destroy(world), OFFPATH_ERR_INVALID, "the world is not to be destroyed");
        void* memory = nullptr;
        expect(offpath_mem_alloc(context, 0, &memory), OFFPATH_ERR_INVALID, "no bytes");
        expect(offpath_mem_free(context, &word), OFFPATH_ERR_INVALID, "not ours");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        expect(offpath_finalize(nullptr), OFFPATH_ERR_INVALID, "no context");
    }));
}

TEST_P(Primitives, WorkOnTeamsOfAnyOrder) {
    EXPECT_TRUE(all_right(5, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        // One team has the odd ranks, the other the even ranks in reverse order.
        const std::vector<std::uint32_t> members =
            me.rank % 2 != 0 ? std::vector<std::uint32_t>{1, 3} : std::vector<std::uint32_t>{4, 2, 0};
        for (std::uint64_t round = 0; round < 3; ++round) {
            offpath_team_h team = nullptr;
            expect(offpath_team_create(context, members.data(), static_cast<std::uint32_t>(members.size()),
                                       100 + round * 2 + me.rank % 2, &team),
                   OFFPATH_OK, "team_create");
            std::uint32_t rank = 99, size = 99;
            expect(offpath_team_rank(team, &rank), OFFPATH_OK, "rank");
            expect(offpath_team_size(team, &size), OFFPATH_OK, "size");
            require(size == members.size() && members[rank] == me.rank, "rank and size of the team");
            std::vector<std::uint32_t> all(size, 77);
            offpath_request_h request = nullptr;
            expect(offpath_iallgather(team, &me.rank, all.data(), 4, &request), OFFPATH_OK, "iallgather");
            expect(offpath_team_destroy(team), OFFPATH_OK, "destroy with work pending");
            done(request);
            require(all == members, "what was gathered");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// There are more schedules than either side keeps.
TEST_P(Primitives, ForgetSchedulesAndBuildThemAgain) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> data(3000);
        for (int round = 0; round < 2; ++round) {
            for (std::size_t bytes = 1; bytes <= 1300; ++bytes) {
                std::memset(data.data(), me.rank == 0 ? static_cast<int>(bytes % 100) + 1 : 0, bytes);
                offpath_request_h request = nullptr;
                expect(offpath_ibcast(world, data.data(), bytes, 0, &request), OFFPATH_OK, "ibcast");
                done(request);
                require(data[0] == static_cast<char>(bytes % 100 + 1) && data[bytes - 1] == data[0], "data");
            }
        }
        offpath_context_counters_t counters{};
        counters.struct_size = sizeof counters;
        expect(offpath_context_counters(context, &counters), OFFPATH_OK, "counters");
        require(counters.operations == 2600 && counters.completed == 2600 && counters.failed == 0,
                "counters");
        require(counters.schedules_built == 2600, "every schedule was built twice");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// A rank that waits copies parts of the block that stays with it; its device copies the others.
TEST_P(Primitives, AWaitingRankCopiesItsOwnBlock) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        constexpr std::size_t bytes = (8 << 20) + 4711;
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<unsigned char> from(2 * bytes), to(2 * bytes);
        offpath_context_counters_t counters{};
        counters.struct_size = sizeof counters;
        int calls = 0;
        // Both start it again until both have helped, which an idle device may prevent for some time.
        for (std::uint32_t helped = 0; helped < 2 && calls < 1000; ++calls) {
            for (std::size_t i = 0; i < from.size(); ++i)
                from[i] = static_cast<unsigned char>(i * 7 + (i >> 13) + me.rank * 3 +
                                                     static_cast<unsigned>(calls));
            offpath_request_h request = nullptr;
            expect(offpath_ialltoall(world, from.data(), to.data(), bytes, &request), OFFPATH_OK,
                   "ialltoall");
            done(request);
            for (std::size_t rank = 0; rank < 2; ++rank)
                for (std::size_t i = 0; i < bytes; ++i) {
                    const std::size_t there = me.rank * bytes + i;
                    require(to[rank * bytes + i] ==
                                static_cast<unsigned char>(there * 7 + (there >> 13) + rank * 3 +
                                                           static_cast<unsigned>(calls)),
                            "data");
                }
            expect(offpath_context_counters(context, &counters), OFFPATH_OK, "counters");
            require(counters.own_bytes <= (static_cast<std::uint64_t>(calls) + 1) * bytes, "too many bytes");
            const std::uint32_t own = counters.own_bytes > 0 ? 1 : 0;
            std::uint32_t of_both[2] = {};
            expect(offpath_iallgather(world, &own, of_both, sizeof own, &request), OFFPATH_OK, "iallgather");
            done(request);
            helped = of_both[0] + of_both[1];
        }
        require(calls < 1000, "no rank helped");
        // A program that knows the earlier structure gets what that has.
        counters.struct_size = offsetof(offpath_context_counters_t, own_bytes);
        counters.own_bytes = 4711;
        expect(offpath_context_counters(context, &counters), OFFPATH_OK, "counters of an earlier version");
        require(counters.own_bytes == 4711 && counters.operations > 0, "the earlier structure");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Primitives, ServeSeveralThreads) {
    EXPECT_TRUE(all_right(
        2, directory.path(),
        [](const Rank& me) {
            offpath_context_h context = me.init();
            std::vector<std::thread> threads;
            for (std::uint64_t t = 0; t < 4; ++t) {
                threads.emplace_back([&, t] {
                    const std::uint32_t members[] = {0, 1};
                    offpath_team_h team = nullptr;
                    expect(offpath_team_create(context, members, 2, t, &team), OFFPATH_OK, "team_create");
                    for (std::uint32_t i = 0; i < 100; ++i) {
                        std::uint32_t out[2] = {i, i + 1000 * me.rank}, in[2] = {};
                        offpath_request_h request = nullptr;
                        expect(offpath_ialltoall(team, out, in, 4, &request), OFFPATH_OK, "ialltoall");
                        if (i % 2 == 0) {
                            while (offpath_request_test(request) == OFFPATH_IN_PROGRESS)
                                std::this_thread::yield();
                        }
                        done(request);
                        require(in[0] == (me.rank == 0 ? i : i) && in[1] == i + (me.rank == 0 ? 0 : 1000),
                                "data");
                    }
                    expect(offpath_team_destroy(team), OFFPATH_OK, "destroy");
                });
            }
            for (auto& thread : threads)
                thread.join();
            expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        },
        OFFPATH_THREADS_MULTIPLE));
}

// Each of two ranks has a proxy of its own.
TEST(Copies, AreCountedForTheRankThatReceives) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--proxies", "2"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        const auto copies = [&] {
            offpath_copies_t found{};
            expect(offpath_context_copies(context, &found), OFFPATH_OK, "copies");
            return found;
        };
        expect(offpath_context_copies(context, nullptr), OFFPATH_ERR_INVALID, "null");
        std::vector<char> memory(1 << 20);
        for (const std::size_t bytes : {std::size_t{1000}, memory.size()}) {
            offpath_request_h request = nullptr;
            expect(me.rank == 0 ? offpath_send_offload(world, memory.data(), bytes, 1, 0, &request)
                                : offpath_recv_offload(world, memory.data(), bytes, 0, 0, &request),
                   OFFPATH_OK, "start");
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            expect(offpath_request_free(request), OFFPATH_OK, "free");
        }
        const offpath_copies_t found = copies();
        require(found.direct == 0, "ordinary memory is copied");
        require(found.once + found.more == (me.rank == 0 ? 0 : memory.size()),
                "the large one, where it came");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    })) << daemon.log();
}

}  // namespace
}  // namespace offpath::test
