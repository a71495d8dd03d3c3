// Runs repeat exactly: several engines and the sessions of several ranks run in one process, on one thread,
// over a clock, random numbers and a network that the test provides. Equal seeds give equal traces, byte for
// byte. A trace has all messages between the engines in their order, and all ends of operations with their
// times.
#include "../transport/forwarding.h"
#include "collectives/collectives.h"
#include "engine/schedules/plan.h"
#include "windows.h"
#include "world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace offpath::testing {
namespace {

class VirtualClock final : public Clock {
  public:
    std::uint64_t now_ns() const override { return now_; }
    void pass(std::uint64_t ns) { now_ += ns; }

  private:
    std::uint64_t now_ = 1;
};

// Records the messages that are sent.
class Recorder final : public transport::Forwarding<> {
  public:
    Recorder(std::unique_ptr<transport::Transport> inner, std::uint32_t proxy, std::string& trace)
        : Forwarding(std::move(inner)), proxy_(proxy), trace_(trace) {}

    Status connect(std::span<const std::byte> address, transport::Endpoint** endpoint) override {
        note("connect", {});  // an address of the loopback names its hub in this process
        return inner_->connect(address, endpoint);
    }
    Status post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        note("post", header, payload);
        return inner_->post(endpoint, header, payload);
    }
    Status send(transport::Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                std::size_t bytes, Completion* completion) override {
        note("send", header, {static_cast<const std::byte*>(payload), bytes});
        return inner_->send(endpoint, header, payload, bytes, completion);
    }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override {
        note("fetch", {});
        return inner_->fetch(rendezvous, destination, bytes, completion);
    }

  private:
    void note(const char* what, std::span<const std::byte> header, std::span<const std::byte> payload = {}) {
        trace_ += fmt::format("{} {} ", proxy_, what);
        for (const auto bytes : {header, payload})
            trace_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        trace_ += '\n';
    }
    const std::uint32_t proxy_;
    std::string& trace_;
};

struct Traced : Completion {
    std::string* trace = nullptr;
    const VirtualClock* clock = nullptr;
    int number = 0;
    std::uint32_t rank = 0;
    bool over = false;
    Traced() {
        function = [](Completion* self, Status status) {
            auto& done = *static_cast<Traced*>(self);
            done.over = true;
            *done.trace +=
                fmt::format("{} ns: {} ends, {}\n", done.clock->now_ns(), done.number, to_string(status));
        };
    }
};

// A mixture of collectives, messages, keyed messages and operations on windows, of sizes that a seed draws.
class Mixture {
  public:
    Mixture(memory::BackEnd memory, std::uint64_t tokens, std::uint64_t network) : random_(network) {
        WorldOptions options;
        options.ranks = ranks;
        options.proxies = 3;
        options.memory = memory;
        options.faults = transport::FaultPlan{.seed = network, .delay_message = 0.3, .delay_completion = 0.3};
        options.loopback = {.order = transport::LoopbackConfig::Order::shuffled, .seed = network};
        options.surroundings = {.clock = &clock_, .seed = tokens, .yields = false};
        options.wrap = [this](std::unique_ptr<transport::Transport> inner, std::uint32_t proxy) {
            return std::make_unique<Recorder>(std::move(inner), proxy, trace_);
        };
        world_.emplace(options);
    }
    ~Mixture() { world_.reset(); }

    std::string run(int lose_at = -1) {
        Windows windows(*world_, 64 << 10);
        for (int i = 0; i < 12; ++i) {
            collective(1 + random_() % 20'000);
            messages(random_() % 20'000);
            accesses(windows, 1 + random_() % 6000);
            for (int round = 0; round < 20; ++round)
                tick();
            if (i == lose_at) world_->kill_proxy(2);
        }
        for (int idle = 0; idle < 3000;)
            idle = tick() ? 0 : idle + 1;
        return trace_;
    }
    // Operations of ranks whose proxy has died end with that error.
    bool all_over() const {
        return std::all_of(done_.begin(), done_.end(),
                           [&](const Traced& done) { return done.over || !is_there(done.rank); });
    }

  private:
    static constexpr std::uint32_t ranks = 5;

    bool tick() {
        clock_.pass(1000);
        return world_->round();
    }
    bool is_there(std::uint32_t rank) const { return world_->is_there(rank); }
    Traced& next_done(std::uint32_t rank) {
        Traced& done = done_.emplace_back();
        done.trace = &trace_;
        done.clock = &clock_;
        done.number = static_cast<int>(done_.size());
        done.rank = rank;
        return done;
    }
    void end_at_once(Status status, Traced& done) {
        if (status != Status::in_progress) done(status);
    }
    std::span<std::byte> buffer(std::size_t bytes) {
        std::vector<std::byte>& made = buffers_.emplace_back(bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            made[i] = static_cast<std::byte>(i * 7 + buffers_.size());
        return made;
    }

    void collective(std::size_t bytes) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            const engine::Plan& plan =
                plans_.emplace_back(collectives::alltoall_pairwise({.rank = rank, .size = ranks}, bytes));
            if (!is_there(rank)) continue;
            const std::array<memory::HostRange, 2> ranges{range(buffer(bytes * ranks)),
                                                          range(buffer(bytes * ranks))};
            Traced& done = next_done(rank);
            end_at_once(world_->engine_of(rank).start(world_->team(rank), plan, sequence_, ranges, &done),
                        done);
        }
        ++sequence_;
    }
    void messages(std::size_t bytes) {
        const auto from = static_cast<std::uint32_t>(random_() % ranks),
                   to = static_cast<std::uint32_t>(random_() % ranks);
        const MessageKey key{random_(), random_()};
        if (is_there(from)) {
            Traced &basic = next_done(from), &keyed = next_done(from);
            auto& engine = world_->engine_of(from);
            end_at_once(engine.send(world_->team(from), range(buffer(bytes)), to, 5, &basic), basic);
            end_at_once(engine.keyed_send(world_->team(from), range(buffer(bytes)), to, key, &keyed), keyed);
        }
        if (is_there(to)) {
            Traced &basic = next_done(to), &keyed = next_done(to);
            auto& engine = world_->engine_of(to);
            end_at_once(engine.recv(world_->team(to), range(buffer(bytes)), from, 5, nullptr, &basic), basic);
            end_at_once(engine.keyed_recv(world_->team(to), range(buffer(bytes)), from, key, nullptr, &keyed),
                        keyed);
        }
    }
    void accesses(Windows& windows, std::size_t bytes) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            if (!is_there(rank)) continue;
            const auto target = static_cast<std::uint32_t>(random_() % ranks);
            Traced& done = next_done(rank);
            end_at_once(world_->engine_of(rank).one_sided(
                            *windows.window[rank], put(target, random_() % 1000, buffer(bytes)), &done),
                        done);
        }
    }
    static memory::HostRange range(std::span<const std::byte> bytes) {
        return World::range(bytes.data(), bytes.size());
    }

    std::mt19937_64 random_;
    VirtualClock clock_;
    std::string trace_;
    std::deque<Traced> done_;
    std::deque<std::vector<std::byte>> buffers_;
    std::deque<engine::Plan> plans_;
    std::uint32_t sequence_ = 0;
    std::optional<World> world_;
};

// Says where two traces differ, for people.
std::string difference(const std::string& a, const std::string& b) {
    const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (at == a.end() && other == b.end()) return {};
    const auto place = static_cast<std::size_t>(at - a.begin());
    const std::size_t line = a.rfind('\n', place) + 1;
    return fmt::format("at {} of {} and {}, in line {}: {:?} and {:?}", place, a.size(), b.size(),
                       std::count(a.begin(), at, '\n') + 1, a.substr(line, 120), b.substr(line, 120));
}

class Repeat : public ::testing::TestWithParam<memory::BackEnd> {};

TEST_P(Repeat, EqualSeedsGiveEqualTraces) {
    Mixture first(GetParam(), 1, 2);
    const std::string trace = first.run();
    EXPECT_TRUE(first.all_over());
    EXPECT_GT(trace.size(), 100'000u);
    // Memory that was used for something else meanwhile has other addresses.
    const std::vector<std::vector<std::byte>> between(100, std::vector<std::byte>(777));
    Mixture second(GetParam(), 1, 2);
    EXPECT_EQ(difference(trace, second.run()), "");
}

TEST_P(Repeat, SoDoRunsInWhichAProxyDies) {
    Mixture first(GetParam(), 1, 2);
    const std::string trace = first.run(5);
    EXPECT_TRUE(first.all_over());
    const std::vector<std::vector<std::byte>> between(100, std::vector<std::byte>(777));
    Mixture second(GetParam(), 1, 2);
    EXPECT_EQ(difference(trace, second.run(5)), "");
}

TEST_P(Repeat, OtherSeedsGiveOthers) {
    const std::string trace = Mixture(GetParam(), 1, 2).run();
    EXPECT_FALSE(Mixture(GetParam(), 2, 2).run() == trace);
    EXPECT_FALSE(Mixture(GetParam(), 1, 3).run() == trace);
}

INSTANTIATE_TEST_SUITE_P(Memory, Repeat,
                         ::testing::Values(memory::BackEnd::map, memory::BackEnd::cma,
                                           memory::BackEnd::staged));

}  // namespace
}  // namespace offpath::testing
