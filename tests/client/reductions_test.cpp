// Reductions, gather, scatter and neighbourhoods through the C API, a daemon and real processes: small and
// odd team sizes, all ways to reach memory, sizes on both sides of each choice of algorithm, several calls in
// flight.
#include "harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <numeric>

namespace offpath::test {
namespace {

enum class Reach { mapped, ordinary, staged };

class Reductions : public testing::TestWithParam<std::tuple<std::uint32_t, Reach>> {
  protected:
    void SetUp() override {
        ASSERT_TRUE(daemon.ready()) << daemon.log();
        if (reach() == Reach::staged) setenv("OFFPATH_BACK_END", "staged", 1);
    }
    void TearDown() override { unsetenv("OFFPATH_BACK_END"); }
    std::uint32_t ranks() const { return std::get<0>(GetParam()); }
    Reach reach() const { return std::get<1>(GetParam()); }
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path(), {"--proxies", "2"}};
};
std::string name_of(const testing::TestParamInfo<std::tuple<std::uint32_t, Reach>>& made) {
    const Reach reach = std::get<1>(made.param);
    return std::to_string(std::get<0>(made.param)) + (reach == Reach::mapped     ? "Mapped"
                                                      : reach == Reach::ordinary ? "Ordinary"
                                                                                 : "Staged");
}
INSTANTIATE_TEST_SUITE_P(Ordinary, Reductions,
                         testing::Combine(testing::Values(1, 2, 3, 5, 8), testing::Values(Reach::ordinary)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Others, Reductions,
                         testing::Combine(testing::Values(2, 5),
                                          testing::Values(Reach::mapped, Reach::staged)),
                         name_of);

// An array of a rank. It knows which contents it must have.
class Array {
  public:
    Array(offpath_context_h context, Reach reach, std::size_t count) {
        if (reach == Reach::mapped) {
            void* memory = nullptr;
            expect(offpath_mem_alloc(context, std::max<std::size_t>(count * 8, 8), &memory), OFFPATH_OK,
                   "alloc");
            context_ = context;
            data_ = static_cast<std::int64_t*>(memory);
        } else {
            data_ = new std::int64_t[count];
        }
        std::fill_n(data_, count, untouched);
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() {
        if (context_ != nullptr)
            offpath_mem_free(context_, data_);
        else
            delete[] data_;
    }
    static constexpr std::int64_t untouched = -77;
    std::int64_t* data() { return data_; }
    template <class Value>
    void fill(std::size_t first, std::size_t count, Value value) {
        for (std::size_t i = 0; i < count; ++i)
            data_[first + i] = value(i);
    }
    template <class Value>
    void check(const std::string& what, std::size_t first, std::size_t count, Value value) const {
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t wanted = value(i);
            if (data_[first + i] == wanted) continue;
            require(false, what + ": element " + std::to_string(i) + " is " +
                               std::to_string(data_[first + i]) + ", not " + std::to_string(wanted));
        }
    }

  private:
    std::int64_t* data_ = nullptr;
    offpath_context_h context_ = nullptr;
};

std::int64_t operand(std::uint32_t rank, std::size_t i) {
    return static_cast<std::int64_t>((rank + 1) * 1000003 + i * 7);
}

// Sums over the ranks [0, ranks).
std::int64_t sum(std::uint32_t ranks, std::size_t i) {
    const std::int64_t n = ranks;
    return n * (n + 1) / 2 * 1000003 + n * static_cast<std::int64_t>(i * 7);
}

class Waiting {
  public:
    offpath_request_h* next() { return &requests_.emplace_back(); }
    void started(offpath_status_t status, const char* call) {
        require(status == OFFPATH_OK || status == OFFPATH_IN_PROGRESS,
                std::string(call) + ": " + offpath_status_string(status));
    }
    void all() {
        for (offpath_request_h request : requests_) {
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            expect(offpath_request_free(request), OFFPATH_OK, "free");
        }
        requests_.clear();
    }

  private:
    std::list<offpath_request_h> requests_;
};

const std::size_t counts[] = {0, 1, 37, 5000, 150'000};

TEST_P(Reductions, OfEverySizeInPlaceAndNot) {
    EXPECT_TRUE(all_right(ranks(), directory.path(), [this](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        for (std::size_t count : counts) {
            const auto mine = [&](std::size_t i) { return operand(me.rank, i); };
            const auto total = [&](std::size_t i) { return sum(me.size, i); };
            const std::uint32_t root = me.size / 2;
            Array send(context, reach(), count), all(context, reach(), count),
                placed(context, reach(), count);
            Array rooted(context, reach(), count), scanned(context, reach(), count),
                before(context, reach(), count);
            Array placed_root(context, reach(), count), placed_scan(context, reach(), count);
            send.fill(0, count, mine);
            placed.fill(0, count, mine);
            placed_root.fill(0, count, mine);
            placed_scan.fill(0, count, mine);
            Waiting waiting;
            waiting.started(offpath_iallreduce(world, send.data(), all.data(), count, OFFPATH_INT64,
                                               OFFPATH_SUM, waiting.next()),
                            "iallreduce");
            waiting.started(offpath_iallreduce(world, OFFPATH_IN_PLACE, placed.data(), count, OFFPATH_INT64,
                                               OFFPATH_SUM, waiting.next()),
                            "iallreduce in place");
            waiting.started(offpath_ireduce(world, send.data(), me.rank == root ? rooted.data() : nullptr,
                                            count, OFFPATH_INT64, OFFPATH_SUM, root, waiting.next()),
                            "ireduce");
            waiting.started(
                offpath_ireduce(world, me.rank == root ? OFFPATH_IN_PLACE : placed_root.data(),
                                placed_root.data(), count, OFFPATH_INT64, OFFPATH_SUM, root, waiting.next()),
                "ireduce in place");
            waiting.started(offpath_iscan(world, send.data(), scanned.data(), count, OFFPATH_INT64,
                                          OFFPATH_SUM, waiting.next()),
                            "iscan");
            waiting.started(offpath_iexscan(world, send.data(), before.data(), count, OFFPATH_INT64,
                                            OFFPATH_SUM, waiting.next()),
                            "iexscan");
            waiting.started(offpath_iexscan(world, OFFPATH_IN_PLACE, placed_scan.data(), count, OFFPATH_INT64,
                                            OFFPATH_SUM, waiting.next()),
                            "iexscan in place");
            waiting.all();
            send.check("the send buffer", 0, count, mine);
            all.check("allreduce", 0, count, total);
            placed.check("allreduce in place", 0, count, total);
            if (me.rank == root) {
                rooted.check("reduce", 0, count, total);
                placed_root.check("reduce in place", 0, count, total);
            } else {
                placed_root.check("reduce elsewhere", 0, count, mine);
            }
            scanned.check("scan", 0, count, [&](std::size_t i) { return sum(me.rank + 1, i); });
            before.check("exscan", 0, count,
                         [&](std::size_t i) { return me.rank == 0 ? Array::untouched : sum(me.rank, i); });
            placed_scan.check("exscan in place", 0, count,
                              [&](std::size_t i) { return me.rank == 0 ? mine(i) : sum(me.rank, i); });
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Reductions, ThatEndInBlocks) {
    EXPECT_TRUE(all_right(ranks(), directory.path(), [this](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        for (std::size_t unit : {0, 3, 2000, 20'000}) {
            std::vector<std::size_t> blocks(me.size), first(me.size);
            for (std::uint32_t rank = 0; rank < me.size; ++rank)
                blocks[rank] = rank % 3 == 1 ? 0 : unit * (1 + rank % 2);
            std::exclusive_scan(blocks.begin(), blocks.end(), first.begin(), std::size_t{0});
            const std::size_t total = first.back() + blocks.back(), own = blocks[me.rank];
            Array send(context, reach(), total), recv(context, reach(), own), placed(context, reach(), total);
            Array equal_send(context, reach(), unit * me.size), equal(context, reach(), unit);
            const auto mine = [&](std::size_t i) { return operand(me.rank, i); };
            send.fill(0, total, mine);
            placed.fill(0, total, mine);
            equal_send.fill(0, unit * me.size, mine);
            Waiting waiting;
            waiting.started(offpath_ireduce_scatter(world, send.data(), recv.data(), blocks.data(),
                                                    OFFPATH_INT64, OFFPATH_SUM, waiting.next()),
                            "ireduce_scatter");
            waiting.started(offpath_ireduce_scatter(world, OFFPATH_IN_PLACE, placed.data(), blocks.data(),
                                                    OFFPATH_INT64, OFFPATH_SUM, waiting.next()),
                            "ireduce_scatter in place");
            waiting.started(offpath_ireduce_scatter_block(world, equal_send.data(), equal.data(), unit,
                                                          OFFPATH_INT64, OFFPATH_SUM, waiting.next()),
                            "ireduce_scatter_block");
            waiting.all();
            const auto result = [&](std::size_t i) { return sum(me.size, first[me.rank] + i); };
            recv.check("reduce_scatter", 0, own, result);
            placed.check("reduce_scatter in place", 0, own, result);
            equal.check("reduce_scatter_block", 0, unit,
                        [&](std::size_t i) { return sum(me.size, me.rank * unit + i); });
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(Reductions, GatherAndScatter) {
    EXPECT_TRUE(all_right(ranks(), directory.path(), [this](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        for (std::size_t unit : {1, 700, 30'000})
            for (std::uint32_t root : {0u, me.size - 1}) {
                const bool is_root = me.rank == root;
                std::vector<std::size_t> bytes(me.size), offsets(me.size), numbers(me.size);
                for (std::uint32_t rank = 0; rank < me.size; ++rank) {
                    numbers[rank] = rank % 3 * unit;
                    bytes[rank] = 8 * numbers[rank];
                    offsets[rank] = 8 * (me.size - 1 - rank) * 2 * unit;
                }
                const std::size_t own = numbers[me.rank], room = is_root ? 2 * unit * me.size : 0;
                const auto mine = [&](std::size_t i) { return operand(me.rank, i); };
                Array block(context, reach(), 2 * unit), gathered(context, reach(), room),
                    placed(context, reach(), room);
                Array varied(context, reach(), room), equal_got(context, reach(), unit),
                    varied_got(context, reach(), own);
                block.fill(0, 2 * unit, mine);
                if (is_root) placed.fill(unit * root, unit, mine);
                Waiting waiting;
                waiting.started(offpath_igather(world, block.data(), is_root ? gathered.data() : nullptr,
                                                8 * unit, root, waiting.next()),
                                "igather");
                waiting.started(
                    offpath_igather(world, is_root ? OFFPATH_IN_PLACE : block.data(),
                                    is_root ? placed.data() : nullptr, 8 * unit, root, waiting.next()),
                    "igather in place");
                waiting.started(
                    offpath_igatherv(world, block.data(), 8 * own, is_root ? varied.data() : nullptr,
                                     is_root ? bytes.data() : nullptr, is_root ? offsets.data() : nullptr,
                                     root, waiting.next()),
                    "igatherv");
                waiting.all();
                const auto of = [&](std::uint32_t rank) {
                    return [rank](std::size_t i) { return operand(rank, i); };
                };
                for (std::uint32_t rank = 0; is_root && rank < me.size; ++rank) {
                    gathered.check("gather", rank * unit, unit, of(rank));
                    placed.check("gather in place", rank * unit, unit, of(rank));
                    varied.check("gatherv", offsets[rank] / 8, numbers[rank], of(rank));
                }
                // Scatters send the gathered blocks back.
                waiting.started(offpath_iscatter(world, is_root ? gathered.data() : nullptr, equal_got.data(),
                                                 8 * unit, root, waiting.next()),
                                "iscatter");
                waiting.started(offpath_iscatter(world, is_root ? placed.data() : nullptr,
                                                 is_root ? const_cast<void*>(OFFPATH_IN_PLACE) : block.data(),
                                                 8 * unit, root, waiting.next()),
                                "iscatter in place");
                waiting.started(
                    offpath_iscatterv(world, is_root ? varied.data() : nullptr,
                                      is_root ? bytes.data() : nullptr, is_root ? offsets.data() : nullptr,
                                      varied_got.data(), 8 * own, root, waiting.next()),
                    "iscatterv");
                waiting.all();
                equal_got.check("scatter", 0, unit, mine);
                block.check("scatter in place", 0, unit, mine);
                varied_got.check("scatterv", 0, own, mine);
            }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Every rank has edges to itself, two edges to the next rank, and one back, in the order of the sender.
TEST_P(Reductions, Neighbourhoods) {
    EXPECT_TRUE(all_right(ranks(), directory.path(), [this](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        const std::uint32_t next = (me.rank + 1) % me.size, previous = (me.rank + me.size - 1) % me.size;
        const std::uint32_t to[] = {next, me.rank, next, previous};
        const std::uint32_t from[] = {previous, next, previous, me.rank};
        for (std::size_t unit : {1, 30'000}) {
            // Edge e of a rank has (e + 1) * unit elements that start at 100 * e.
            const std::size_t out_numbers[] = {unit, 2 * unit, 3 * unit, 4 * unit};
            std::size_t send_bytes[4], send_offsets[4], recv_bytes[4], recv_offsets[4];
            Array send(context, reach(), 10 * unit), recv(context, reach(), 10 * unit);
            // The k-th incoming edge from a sender belongs to the sender's k-th edge to this rank.
            std::size_t edge[4] = {}, at = 0;
            for (int e = 0; e < 4; ++e) {
                send_bytes[e] = 8 * out_numbers[e];
                send_offsets[e] = at;
                send.fill(at / 8, out_numbers[e],
                          [&](std::size_t i) { return operand(me.rank, 100 * e + i); });
                at += send_bytes[e];
            }
            at = 0;
            for (int e = 0; e < 4; ++e) {
                const std::uint32_t peer = from[e];
                const std::uint32_t their[] = {(peer + 1) % me.size, peer, (peer + 1) % me.size,
                                               (peer + me.size - 1) % me.size};
                std::size_t nth = 0;
                for (int other = 0; other < e; ++other)
                    nth += from[other] == peer;
                for (std::size_t candidate = 0; candidate < 4; ++candidate)
                    if (their[candidate] == me.rank && nth-- == 0) edge[e] = candidate;
                recv_bytes[e] = 8 * out_numbers[edge[e]];
                recv_offsets[e] = at;
                at += recv_bytes[e];
            }
            Waiting waiting;
            waiting.started(
                offpath_ineighbor_alltoallv(world, send.data(), 4, to, send_bytes, send_offsets, recv.data(),
                                            4, from, recv_bytes, recv_offsets, waiting.next()),
                "ineighbor_alltoallv");
            waiting.all();
            for (int e = 0; e < 4; ++e)
                recv.check("edge " + std::to_string(e), recv_offsets[e] / 8, recv_bytes[e] / 8,
                           [&](std::size_t i) { return operand(from[e], 100 * edge[e] + i); });
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

class ReductionTypes : public testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(daemon.ready()) << daemon.log(); }
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path(), {"--proxies", "2"}};
};

TEST_F(ReductionTypes, FindTheLeastAndWhereItIs) {
    EXPECT_TRUE(all_right(3, directory.path(), [](const Rank& me) {
        struct Located {
            double value;
            std::int32_t where;
        };
        offpath_context_h context = me.init();
        std::vector<Located> send(1000), recv(1000);
        for (int i = 0; i < 1000; ++i)
            send[i] = {static_cast<double>((i * 7 + me.rank * 3) % 5), static_cast<std::int32_t>(me.rank)};
        offpath_request_h request = nullptr;
        expect(offpath_iallreduce(me.world(context), send.data(), recv.data(), 1000, OFFPATH_FLOAT64_INT32,
                                  OFFPATH_MINLOC, &request),
               OFFPATH_OK, "iallreduce");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        expect(offpath_request_free(request), OFFPATH_OK, "free");
        for (int i = 0; i < 1000; ++i) {
            int least = 0;
            for (int rank = 1; rank < 3; ++rank)
                if ((i * 7 + rank * 3) % 5 < (i * 7 + least * 3) % 5) least = rank;
            require(recv[i].value == (i * 7 + least * 3) % 5 && recv[i].where == least,
                    "element " + std::to_string(i));
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_F(ReductionTypes, AreRefusedWhereTheyMakeNoSense) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        offpath_request_h request = nullptr;
        double in = 0, out = 0;
        expect(offpath_reduction_supported(context, OFFPATH_FLOAT64, OFFPATH_SUM), OFFPATH_OK, "a sum");
        expect(offpath_reduction_supported(context, OFFPATH_FLOAT64, OFFPATH_BAND), OFFPATH_ERR_UNSUPPORTED,
               "bits of doubles");
        expect(offpath_reduction_supported(context, OFFPATH_LONG_DOUBLE, OFFPATH_SUM),
               remote_mode() ? OFFPATH_ERR_UNSUPPORTED : OFFPATH_OK, "long doubles");
        expect(offpath_reduction_supported(nullptr, OFFPATH_INT8, OFFPATH_SUM), OFFPATH_ERR_INVALID,
               "no context");
        expect(offpath_iallreduce(world, &in, &out, 1, OFFPATH_FLOAT64, OFFPATH_BAND, &request),
               OFFPATH_ERR_UNSUPPORTED, "bits of doubles");
        expect(
            offpath_iallreduce(world, &in, &out, 1, static_cast<offpath_type_t>(99), OFFPATH_SUM, &request),
            OFFPATH_ERR_UNSUPPORTED, "no type");
        expect(offpath_iallreduce(world, nullptr, &out, 1, OFFPATH_FLOAT64, OFFPATH_SUM, &request),
               OFFPATH_ERR_INVALID, "no buffer");
        expect(offpath_iallreduce(world, &in, &out, SIZE_MAX / 4, OFFPATH_FLOAT64, OFFPATH_SUM, &request),
               OFFPATH_ERR_INVALID, "too large");
        expect(offpath_ireduce(world, &in, &out, 1, OFFPATH_FLOAT64, OFFPATH_SUM, 1, &request),
               OFFPATH_ERR_INVALID, "no such root");
        expect(offpath_igather(world, &in, &out, 8, 1, &request), OFFPATH_ERR_INVALID, "no such root");
        const std::uint32_t self = 0, other = 1;
        const std::size_t eight = 8, four = 4, zero = 0;
        expect(offpath_ineighbor_alltoallv(world, &in, 1, &other, &eight, &zero, &out, 0, nullptr, nullptr,
                                           nullptr, &request),
               OFFPATH_ERR_INVALID, "no such neighbour");
        expect(offpath_ineighbor_alltoallv(world, &in, 1, &self, &eight, &zero, &out, 1, &self, &four, &zero,
                                           &request),
               OFFPATH_ERR_INVALID, "edges that do not fit");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
