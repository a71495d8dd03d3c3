// Operations of many pieces on windows: the right bytes move, whatever their number. What one operation does
// in a round is bounded, so operations of other ranks continue. Counted in rounds, not in time.
#include "windows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace offpath::testing {
namespace {

using engine::OneSidedCall;
using memory::BackEnd;
using rma::OpKind;
using schedule::DataType;
using schedule::Reduction;

constexpr auto sum = static_cast<std::uint8_t>(Reduction::sum);
constexpr std::uint64_t word = sizeof(std::uint32_t);

class Turns : public ::testing::TestWithParam<std::tuple<BackEnd, std::uint32_t>> {
  protected:
    WorldOptions options(std::uint32_t ranks) const {
        WorldOptions made;
        made.ranks = ranks;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::min(ranks, std::get<1>(GetParam()));
        return made;
    }
};
INSTANTIATE_TEST_SUITE_P(All, Turns,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1, 2)),
                         [](const auto& instance) {
                             return std::string(memory::to_string(std::get<0>(instance.param))) + "_" +
                                    std::to_string(std::get<1>(instance.param)) + "_proxies";
                         });

// Transfers the words of `places`, with as many calls as their number requires.
std::vector<OneSidedCall> calls(OpKind kind, std::uint32_t target, std::span<const std::uint64_t> places,
                                std::uint32_t* operands, std::uint32_t* results) {
    std::vector<OneSidedCall> made;
    for (std::size_t first = 0; first < places.size(); first += rma::max_segments) {
        const std::size_t count = std::min<std::size_t>(places.size() - first, rma::max_segments);
        OneSidedCall& call = made.emplace_back();
        call.kind = kind;
        call.type = static_cast<std::uint8_t>(DataType::uint32);
        call.reduction = sum;
        call.target = target;
        call.bytes = count * word;
        if (rma::operand_bytes(kind, sum, 1) > 0) call.origin = World::range(operands + first, call.bytes);
        if (rma::result_bytes(kind, 1) > 0) call.result = World::range(results + first, call.bytes);
        for (const std::uint64_t place : places.subspan(first, count))
            call.segments.push_back({place * word, word});
    }
    return made;
}

// Returns some of the words of a window, in any order, no two of them adjacent.
std::vector<std::uint64_t> some_places(std::mt19937& random, std::size_t count) {
    std::vector<std::uint64_t> places(count);
    for (std::size_t i = 0; i < count; ++i)
        places[i] = 3 * i + random() % 2;
    std::shuffle(places.begin(), places.end(), random);
    return places;
}

TEST_P(Turns, AnyNumberOfPiecesMovesTheRightBytes) {
    std::mt19937 random(7);
    for (const std::size_t count : {1, 255, 257, 1023, 1024, 1025, 100000}) {
        WorldOptions faulty = options(3);
        faulty.faults = transport::FaultPlan{.seed = 3, .delay_message = 0.3, .delay_completion = 0.2};
        World world(faulty);
        Windows windows(world, 3 * count * word);
        std::vector<std::uint32_t> expected(3 * count);
        for (const OpKind kind : {OpKind::put, OpKind::accumulate, OpKind::get_accumulate, OpKind::get}) {
            const std::vector<std::uint64_t> places = some_places(random, count);
            std::vector<std::uint32_t> operands(count), results(count);
            for (std::uint32_t& each : operands)
                each = static_cast<std::uint32_t>(random());
            for (OneSidedCall& call : calls(kind, 1, places, operands.data(), results.data()))
                windows.start(0, std::move(call));
            ASSERT_EQ(windows.flush(0), Status::ok);
            for (std::size_t i = 0; i < count; ++i) {
                std::uint32_t& there = expected[places[i]];
                ASSERT_TRUE(rma::result_bytes(kind, 1) == 0 || results[i] == there) << i << " of " << count;
                if (kind == OpKind::put) there = operands[i];
                if (rma::is_update(kind)) there += operands[i];
            }
            ASSERT_EQ(std::memcmp(expected.data(), windows.memory[1].data(), 3 * count * word), 0) << count;
        }
        const engine::Counters& counters = world.engine_of(1).counters();
        const engine::Config config;
        // An update reads and writes its pieces.
        EXPECT_LE(counters.most_round_pieces, config.round_pieces + 2 * rma::message_segments);
        EXPECT_LE(counters.most_round_bytes, config.round_bytes + 2 * rma::part_bytes);
    }
}

TEST_P(Turns, OthersOperationsAreDoneWhileAHugeOneIsUnderWay) {
    constexpr std::size_t huge = 131072;
    std::vector<std::uint64_t> places(huge);
    std::iota(places.begin(), places.end(), 0);
    for (std::uint64_t& place : places)
        place *= 2;
    for (const OpKind kind : {OpKind::put, OpKind::get, OpKind::accumulate, OpKind::get_accumulate}) {
        WorldOptions made = options(6);
        made.engine.round_pieces = 512;
        World world(made);
        Windows windows(world, (2 * huge + 100) * word);
        std::vector<std::uint32_t> operands(huge, 5), results(huge, 1);
        std::deque<Done> done;
        for (OneSidedCall& call : calls(kind, 1, places, operands.data(), results.data()))
            windows.start(0, std::move(call), &done.emplace_back());
        const auto over = [&] { return done[0].status.has_value() && done[1].status.has_value(); };
        for (int i = 0; i < 20; ++i)
            world.round();
        ASSERT_FALSE(over());

        // Operations of another rank: a few pieces, and more than one message carries, to the same target and
        // to another.
        const std::vector<std::uint64_t> few = {2 * huge + 1, 2 * huge + 3, 2 * huge + 5};
        std::vector<std::uint32_t> ours(few.size(), 9), fetched(few.size());
        std::vector<std::byte> long_one(20000, std::byte{1});
        std::deque<Done> small;
        for (const std::uint32_t target : {1u, 3u}) {
            for (const OpKind other : {OpKind::put, OpKind::accumulate, OpKind::get}) {
                for (OneSidedCall& call : calls(other, target, few, ours.data(), fetched.data()))
                    windows.start(2, std::move(call), &small.emplace_back());
            }
        }
        windows.start(4, put(5, 0, long_one), &small.emplace_back());
        const auto small_left = [&] {
            return std::ranges::count_if(small, [](const Done& each) { return !each.status.has_value(); });
        };
        int rounds = 0;
        for (; small_left() > 0 && rounds < 150; ++rounds)
            world.round();
        EXPECT_EQ(small_left(), 0) << "of " << small.size() << ", kind " << static_cast<int>(kind);
        EXPECT_FALSE(over()) << "too small to say anything, after " << rounds << " rounds";
        for (const Done& each : small)
            EXPECT_EQ(each.status, Status::ok);
        ASSERT_TRUE(world.run_until(over));
        EXPECT_EQ(done[0].status, Status::ok);
        EXPECT_EQ(done[1].status, Status::ok);
        EXPECT_LE(world.engine_of(1).counters().most_round_pieces, 512 + 2 * rma::message_segments);
        std::size_t wrong = 0;
        for (const std::uint64_t place : places) {
            std::uint32_t value = 0;
            std::memcpy(&value, windows.memory[1].data() + place * word, word);
            if (value != (kind == OpKind::get ? 0 : 5)) ++wrong;
        }
        EXPECT_EQ(wrong, 0u);
        if (kind == OpKind::get || kind == OpKind::get_accumulate) {
            EXPECT_EQ(results, std::vector<std::uint32_t>(huge, 0));
        }
    }
}

// Each fetched value occurs once. So no other update came between the reading and the writing of an update.
TEST_P(Turns, UpdatesStayAtomicAndInTheirOrder) {
    constexpr std::size_t count = 3000;
    constexpr std::uint32_t ranks = 4, times = 4;
    WorldOptions made = options(ranks);
    made.engine.round_pieces = 700;
    World world(made);
    Windows windows(world, 3 * count * word);
    std::mt19937 random(11);
    std::vector<std::uint32_t> ones(count, 1);
    std::deque<std::vector<std::uint32_t>> fetched;
    std::deque<std::vector<std::uint64_t>> orders;
    std::vector<std::uint64_t> all = some_places(random, count);
    for (std::uint32_t time = 0; time < times; ++time) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            std::shuffle(all.begin(), all.end(), random);
            orders.push_back(all);
            fetched.emplace_back(count);
            for (OneSidedCall& call :
                 calls(OpKind::get_accumulate, 2, all, ones.data(), fetched.back().data()))
                windows.start(rank, std::move(call));
        }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(windows.flush(rank), Status::ok);
    std::map<std::uint64_t, std::vector<std::vector<std::uint32_t>>> seen;  // by place and rank
    for (std::size_t i = 0; i < orders.size(); ++i) {
        for (std::size_t k = 0; k < count; ++k) {
            auto& by_rank = seen[orders[i][k]];
            by_rank.resize(ranks);
            by_rank[i % ranks].push_back(fetched[i][k]);
        }
    }
    for (auto& [place, by_rank] : seen) {
        std::vector<std::uint32_t> tickets;
        for (const auto& each : by_rank) {
            EXPECT_TRUE(std::is_sorted(each.begin(), each.end())) << "updates of one rank were reordered";
            tickets.insert(tickets.end(), each.begin(), each.end());
        }
        std::sort(tickets.begin(), tickets.end());
        for (std::uint32_t i = 0; i < ranks * times; ++i)
            ASSERT_EQ(tickets[i], i) << "at " << place;
    }
}

TEST_P(Turns, WhatIsOrderedComesBehindAllPieces) {
    constexpr std::size_t count = 20000;
    World world(options(3));
    Windows windows(world, (3 * count + 8) * word);
    std::mt19937 random(13);
    const std::vector<std::uint64_t> places = some_places(random, count);
    std::vector<std::uint32_t> operands(count, 6);
    for (OneSidedCall& call : calls(OpKind::put, 1, places, operands.data(), nullptr))
        windows.start(0, std::move(call));
    const std::uint32_t flag = 1;
    OneSidedCall behind = put(1, (3 * count + 4) * word, std::as_bytes(std::span(&flag, 1)));
    behind.ordered = true;
    windows.start(0, behind);
    std::uint32_t found = 0;
    ASSERT_TRUE(world.run_until([&] {
        std::memcpy(&found, windows.memory[1].data() + (3 * count + 4) * word, word);
        return found == flag;
    }));
    for (const std::uint64_t place : places) {
        std::memcpy(&found, windows.memory[1].data() + place * word, word);
        ASSERT_EQ(found, 6u);
    }
    ASSERT_EQ(windows.flush(0), Status::ok);
}

// The session of the origin or of the target ends while pieces wait for their turn.
TEST_P(Turns, WhatWaitsEndsWithItsSession) {
    constexpr std::size_t count = 60000;
    for (const std::uint32_t leaver : {0u, 1u}) {
        for (const OpKind kind : {OpKind::put, OpKind::get, OpKind::accumulate}) {
            World world(options(4));
            Windows windows(world, 3 * count * word);
            std::mt19937 random(17);
            const std::vector<std::uint64_t> places = some_places(random, count);
            std::vector<std::uint32_t> operands(count, 6), results(count);
            Done huge;
            for (OneSidedCall& call : calls(kind, 1, places, operands.data(), results.data()))
                windows.start(0, std::move(call), &huge);
            for (int i = 0; i < 9; ++i)
                world.round();
            ASSERT_FALSE(huge.status.has_value());
            engine::Engine& engine = world.engine_of(leaver);
            bool closed = engine.close_session(world.session(leaver), Status::peer_lost);
            for (int i = 0; i < 2000 && !closed; ++i) {
                world.round();
                closed = engine.close_session(world.session(leaver), Status::peer_lost);
            }
            ASSERT_TRUE(closed);
            const std::uint32_t stays = 1 - leaver;
            ASSERT_TRUE(world.run_until([&] {
                return huge.status.has_value() &&
                       world.engine_of(stays).outstanding(*world.session(stays)) == 0;
            }));
            EXPECT_NE(*huge.status, Status::ok);
            // The other ranks do not notice.
            for (OneSidedCall& call : calls(kind, 3, places, operands.data(), results.data()))
                windows.start(2, std::move(call));
            EXPECT_EQ(windows.flush(2, 3), Status::ok);
            Done ended;
            ASSERT_EQ(world.engine_of(3).destroy_window(*windows.window[3], &ended), Status::in_progress);
            ASSERT_TRUE(world.run_until([&] { return ended.status.has_value(); }));
            EXPECT_FALSE(world.engine_of(3).has_work());
        }
    }
}

}  // namespace
}  // namespace offpath::testing
