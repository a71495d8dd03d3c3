// Every collective on real engines: small and odd team sizes, ranks spread over one, two or as many proxies
// as ranks, all kinds of memory, several runs in flight, and messages that are delayed and reordered.
#include "collectives/selection.h"
#include "engine/schedules/plan.h"
#include "world.h"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using collectives::TeamShape;
using memory::BackEnd;

std::byte pattern(std::uint64_t from, std::uint64_t to, std::uint64_t position, std::uint64_t run) {
    return static_cast<std::byte>((from * 131 + to * 31 + position * 7 + (position >> 8) + run * 17) & 0xff);
}

struct Trial {
    std::vector<std::vector<std::byte>> send, recv;
    std::vector<Done> done;
    explicit Trial(std::uint32_t ranks) : send(ranks), recv(ranks), done(ranks) {}
    bool over() const {
        return std::all_of(done.begin(), done.end(), [](const Done& d) { return d.status.has_value(); });
    }
    void expect_ok() const {
        for (const Done& d : done) {
            ASSERT_TRUE(d.status.has_value());
            ASSERT_EQ(*d.status, Status::ok) << to_string(*d.status);
        }
    }
};

class EngineCollectives : public ::testing::TestWithParam<BackEnd> {
  protected:
    // Calls `body` with worlds of every shape.
    template <typename Body>
    void in_worlds(Body body) {
        for (std::uint32_t ranks : {1u, 2u, 3u, 5u, 8u}) {
            for (std::uint32_t proxies : {1u, 2u, ranks}) {
                if (proxies > ranks) continue;
                WorldOptions options;
                options.ranks = ranks;
                options.proxies = proxies;
                options.memory = GetParam();
                SCOPED_TRACE(::testing::Message() << ranks << " ranks, " << proxies << " proxies");
                World plain(options);
                body(plain);
                options.faults = transport::FaultPlan{
                    .seed = ranks * 10 + proxies, .delay_message = 0.3, .delay_completion = 0.3};
                World slow(options);
                body(slow);
            }
        }
    }
};

TEST_P(EngineCollectives, AlltoallSeveralInFlight) {
    in_worlds([](World& world) {
        const std::uint32_t n = world.ranks();
        std::uint32_t sequence = 0;
        for (std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{30000}}) {
            std::vector<std::unique_ptr<engine::Plan>> plans;
            for (std::uint32_t r = 0; r < n; ++r)
                plans.push_back(std::make_unique<engine::Plan>(collectives::alltoall({r, n}, bytes)));
            std::vector<Trial> runs(3, Trial(n));
            for (std::size_t k = 0; k < runs.size(); ++k) {
                for (std::uint32_t r = 0; r < n; ++r) {
                    runs[k].send[r].resize(n * bytes);
                    runs[k].recv[r].assign(n * bytes, std::byte{0xEE});
                    for (std::uint32_t to = 0; to < n; ++to) {
                        for (std::size_t i = 0; i < bytes; ++i)
                            runs[k].send[r][to * bytes + i] = pattern(r, to, i, k);
                    }
                }
            }
            // The ranks start one after the other, so early messages meet ranks that have not started.
            for (std::uint32_t r = 0; r < n; ++r) {
                for (std::size_t k = 0; k < runs.size(); ++k) {
                    const memory::HostRange buffers[] = {World::range(runs[k].send[r].data(), n * bytes),
                                                         World::range(runs[k].recv[r].data(), n * bytes)};
                    ASSERT_EQ(world.engine_of(r).start(world.team(r), *plans[r], sequence + k, buffers,
                                                       &runs[k].done[r]),
                              Status::in_progress);
                }
                world.round();
            }
            sequence += runs.size();
            ASSERT_TRUE(world.run_until([&] {
                return std::all_of(runs.begin(), runs.end(), [](const Trial& run) { return run.over(); });
            }));
            for (std::size_t k = 0; k < runs.size(); ++k) {
                runs[k].expect_ok();
                for (std::uint32_t r = 0; r < n; ++r) {
                    for (std::uint32_t from = 0; from < n; ++from) {
                        for (std::size_t i = 0; i < bytes; ++i) {
                            ASSERT_EQ(runs[k].recv[r][from * bytes + i], pattern(from, r, i, k))
                                << "run " << k << " from " << from << " byte " << i;
                        }
                    }
                }
            }
        }
    });
}

TEST_P(EngineCollectives, BcastEveryRoot) {
    in_worlds([](World& world) {
        const std::uint32_t n = world.ranks();
        std::uint32_t sequence = 0;
        collectives::Selection selection;
        selection.segment_bytes = 8192;
        for (std::size_t bytes : {std::size_t{3}, std::size_t{70001}, std::size_t{200000}}) {
            for (std::uint32_t root = 0; root < n; ++root) {
                std::vector<std::unique_ptr<engine::Plan>> plans;
                Trial run(n);
                for (std::uint32_t r = 0; r < n; ++r) {
                    plans.push_back(
                        std::make_unique<engine::Plan>(collectives::bcast({r, n}, root, bytes, selection)));
                    run.recv[r].assign(bytes, std::byte{0});
                    for (std::size_t i = 0; r == root && i < bytes; ++i)
                        run.recv[r][i] = pattern(root, 0, i, bytes);
                    const memory::HostRange buffers[] = {World::range(run.recv[r].data(), bytes)};
                    ASSERT_EQ(
                        world.engine_of(r).start(world.team(r), *plans[r], sequence, buffers, &run.done[r]),
                        Status::in_progress);
                }
                ++sequence;
                ASSERT_TRUE(world.run_until([&] { return run.over(); }));
                run.expect_ok();
                for (std::uint32_t r = 0; r < n; ++r)
                    ASSERT_EQ(run.recv[r], run.recv[root]);
            }
        }
    });
}

TEST_P(EngineCollectives, AllgathervUnevenAndBarrier) {
    in_worlds([](World& world) {
        const std::uint32_t n = world.ranks();
        std::uint32_t sequence = 0;
        for (std::uint64_t unit : {std::uint64_t{5}, std::uint64_t{20000}}) {
            std::vector<std::uint64_t> bytes(n), offsets(n);
            std::uint64_t total = 0;
            for (std::uint32_t r = 0; r < n; ++r) {
                bytes[r] = unit * (r % 3);  // some contribute nothing
                offsets[r] = total;
                total += bytes[r];
            }
            std::vector<std::unique_ptr<engine::Plan>> plans, barriers;
            Trial run(n), barrier(n);
            for (std::uint32_t r = 0; r < n; ++r) {
                plans.push_back(
                    std::make_unique<engine::Plan>(collectives::allgatherv({r, n}, bytes, offsets, false)));
                barriers.push_back(std::make_unique<engine::Plan>(collectives::barrier({r, n})));
                run.send[r].resize(bytes[r]);
                for (std::size_t i = 0; i < bytes[r]; ++i)
                    run.send[r][i] = pattern(r, 1, i, unit);
                run.recv[r].assign(total, std::byte{0xEE});
            }
            for (std::uint32_t r = 0; r < n; ++r) {
                const memory::HostRange buffers[] = {World::range(run.send[r].data(), bytes[r]),
                                                     World::range(run.recv[r].data(), total)};
                ASSERT_EQ(world.engine_of(r).start(world.team(r), *plans[r], sequence, buffers, &run.done[r]),
                          Status::in_progress);
                // The barrier cannot end before the last rank has started it.
                for (int i = 0; i < 50; ++i)
                    world.round();
                for (const Done& done : barrier.done)
                    ASSERT_FALSE(done.status.has_value());
                ASSERT_EQ(
                    world.engine_of(r).start(world.team(r), *barriers[r], sequence + 1, {}, &barrier.done[r]),
                    Status::in_progress);
            }
            sequence += 2;
            ASSERT_TRUE(world.run_until([&] { return run.over() && barrier.over(); }));
            run.expect_ok();
            barrier.expect_ok();
            for (std::uint32_t r = 0; r < n; ++r) {
                for (std::uint32_t from = 0; from < n; ++from) {
                    for (std::size_t i = 0; i < bytes[from]; ++i)
                        ASSERT_EQ(run.recv[r][offsets[from] + i], pattern(from, 1, i, unit));
                }
            }
        }
    });
}

// Reductions with their own segment size, so that small buffers have many segments. All ops share three
// tiles.
TEST_P(EngineCollectives, ReductionsSeveralInFlight) {
    const collectives::Reducing what{schedule::DataType::int32, schedule::Reduction::sum};
    const auto operand = [](std::uint32_t rank, std::size_t i) {
        return static_cast<std::int32_t>(rank * 100'003 + i * 17);
    };
    using Build = std::function<collectives::Schedule(TeamShape team, std::uint64_t bytes)>;
    const std::vector<Build> builds{
        [&](TeamShape team, std::uint64_t bytes) {
            return collectives::allreduce_ring(team, bytes, what, true, 8192);
        },
        [&](TeamShape team, std::uint64_t bytes) {
            return collectives::allreduce_recursive_doubling(team, bytes, what, true);
        },
        [&](TeamShape team, std::uint64_t bytes) {
            return collectives::scan_chain(team, bytes, what, true, false, 4096);
        },
        [&](TeamShape team, std::uint64_t bytes) {
            return collectives::reduce_chain(team, 0, bytes, what, team.rank == 0, 8192);
        },
    };
    in_worlds([&](World& world) {
        const std::uint32_t n = world.ranks();
        std::uint32_t sequence = 0;
        for (std::size_t count : {std::size_t{3}, std::size_t{25'000}}) {
            std::vector<std::unique_ptr<engine::Plan>> plans;
            std::vector<Trial> runs(builds.size(), Trial(n));
            for (std::size_t k = 0; k < builds.size(); ++k)
                for (std::uint32_t r = 0; r < n; ++r) {
                    std::vector<std::byte>& buffer = runs[k].recv[r];
                    buffer.resize(count * 4);
                    for (std::size_t i = 0; i < count; ++i) {
                        const std::int32_t value = operand(r, i);
                        std::memcpy(buffer.data() + 4 * i, &value, 4);
                    }
                    plans.push_back(std::make_unique<engine::Plan>(builds[k]({r, n}, count * 4)));
                    const memory::HostRange buffers[] = {World::range(buffer.data(), buffer.size())};
                    ASSERT_EQ(world.engine_of(r).start(world.team(r), *plans.back(),
                                                       sequence + static_cast<std::uint32_t>(k), buffers,
                                                       &runs[k].done[r]),
                              Status::in_progress);
                }
            sequence += static_cast<std::uint32_t>(builds.size());
            ASSERT_TRUE(world.run_until([&] {
                return std::all_of(runs.begin(), runs.end(), [](const Trial& run) { return run.over(); });
            }));
            for (std::size_t k = 0; k < builds.size(); ++k) {
                runs[k].expect_ok();
                for (std::uint32_t r = 0; r < n; ++r)
                    for (std::size_t i = 0; i < count; ++i) {
                        std::int32_t expected = 0, got;
                        const std::uint32_t upto = k == 2 ? r + 1 : n;
                        for (std::uint32_t from = 0; from < upto; ++from)
                            expected += operand(from, i);
                        if (k == 3 && r != 0) expected = operand(r, i);
                        std::memcpy(&got, runs[k].recv[r].data() + 4 * i, 4);
                        ASSERT_EQ(got, expected) << "schedule " << k << ", rank " << r << ", element " << i;
                    }
            }
        }
        std::uint64_t reduced = 0;
        for (std::uint32_t r = 0; r < n; ++r)
            reduced += world.engine_of(r).counters().bytes_reduced;
        ASSERT_EQ(reduced > 0, n > 1);
    });
}

INSTANTIATE_TEST_SUITE_P(Memory, EngineCollectives,
                         ::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                         [](const auto& made) { return std::string(memory::to_string(made.param)); });

}  // namespace
}  // namespace offpath::testing
