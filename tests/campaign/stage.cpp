#include "stage.h"

#include <algorithm>
#include <random>

namespace offpath::campaign {
namespace {

testing::WorldOptions options_of(const Scenario& scenario, const Clock& clock, std::vector<Gate*>& gates,
                                 Flaw flaw) {
    testing::WorldOptions options;
    options.ranks = scenario.ranks;
    options.proxies = scenario.proxies;
    options.memory = scenario.memory;
    options.loopback = {.order = scenario.shuffled ? transport::LoopbackConfig::Order::shuffled
                                                   : transport::LoopbackConfig::Order::fifo,
                        .seed = scenario.seed,
                        .eager_bytes = scenario.eager_bytes};
    options.advance_first = scenario.advance_first;
    options.surroundings = {.clock = &clock, .seed = scenario.seed, .yields = false};
    options.engine.chunk_bytes = scenario.chunk_bytes;
    options.engine.ended_peers = 64;  // taking memory for more takes a third of a run's time
    options.wrap = [&gates, &scenario, flaw](std::unique_ptr<transport::Transport> inner,
                                             std::uint32_t proxy) {
        const transport::FaultPlan plan{.seed = scenario.seed + proxy,
                                        .delay_message = scenario.delay_message,
                                        .delay_completion = scenario.delay_completion,
                                        .fail_send = scenario.fail_send};
        auto made = std::make_unique<Gate>(transport::make_faulty(std::move(inner), plan), flaw);
        gates.push_back(made.get());
        return made;
    };
    return options;
}

}  // namespace

Stage::Stage(const Scenario& scenario, Flaw flaw)
    : scenario_(scenario),
      world_(std::make_unique<testing::World>(options_of(scenario_, clock_, gates_, flaw))),
      leaving_(scenario.ranks),
      closed_(scenario.ranks),
      reasons_(scenario.ranks, Status::ok),
      go_on_at_(scenario.proxies),
      cut_(scenario.proxies),
      sends_fail_(scenario.fail_send > 0) {
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
        engine(rank).greet(session(rank));
}

// Engines outlive their transports, and the stranger its hub must not.
Stage::~Stage() {
    stranger_.reset();
    world_.reset();
}

bool Stage::round() {
    for (std::uint32_t proxy = 0; proxy < proxies(); ++proxy)
        if (go_on_at_[proxy] != 0 && clock_.now_ns() >= go_on_at_[proxy]) {
            go_on_at_[proxy] = 0;
            world_->go_on(proxy);
        }
    bool moved = world_->round();
    moved |= close_some();
    // Where nothing happens, time may run faster, but beats keep their distance.
    clock_.pass(moved ? round_ns : silence_ns / 16);
    beat();
    return moved;
}

// As a proxy's loop does, several times within the limit. A stopped proxy does nothing.
void Stage::beat() {
    if (clock_.now_ns() < next_beat_) return;
    next_beat_ = clock_.now_ns() + silence_ns / 16;
    for (std::uint32_t proxy = 0; proxy < proxies(); ++proxy)
        if (gates_[proxy] != nullptr && !world_->stopped(proxy))
            world_->engine_of(proxy).beat(clock_.now_ns(), silence_ns);
}

bool Stage::close_some() {
    bool any = false;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        if (!leaving_[rank] || gone(rank) || world_->stopped(proxy_of(rank))) continue;
        if (!engine(rank).close_session(&session(rank), reasons_[rank])) continue;
        closed_[rank] = any = true;
    }
    return any;
}

void Stage::close_rank(std::uint32_t rank, Status reason) {
    if (leaving_[rank] || !world_->is_there(rank)) return;
    if (reason == Status::peer_lost) hit_ |= only(rank);
    leaving_[rank] = true;
    reasons_[rank] = reason;
}

void Stage::kill_proxy(std::uint32_t proxy) {
    if (gates_[proxy] == nullptr) return;
    gates_[proxy] = nullptr;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
        if (proxy_of(rank) == proxy) hit_ |= only(rank);
    world_->kill_proxy(proxy);
}

void Stage::stop_proxy(std::uint32_t proxy, std::uint64_t ns, bool counts) {
    if (gates_[proxy] == nullptr || go_on_at_[proxy] != 0) return;
    for (std::uint32_t rank = 0; counts && rank < ranks(); ++rank)
        if (proxy_of(rank) == proxy) hit_ |= only(rank);
    go_on_at_[proxy] = clock_.now_ns() + ns;
    world_->stop(proxy);
}

void Stage::lose_link(std::uint32_t a, std::uint32_t b) {
    if (a == b || gates_[a] == nullptr || gates_[b] == nullptr) return;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        if (proxy_of(rank) == a) cut_[b] |= only(rank);
        if (proxy_of(rank) == b) cut_[a] |= only(rank);
    }
    gates_[a]->lose(world_->address_of(b));
    gates_[b]->lose(world_->address_of(a));
}

void Stage::forbid(std::uint32_t rank) {
    if (gone(rank)) return;
    hit_ |= only(rank);
    world_->memory(rank).forbid();
}

void Stage::send_rubbish(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    if (!stranger_) {
        stranger_ = world_->stranger();
        stranger_to_.resize(proxies());
    }
    for (std::uint32_t proxy = 0; proxy < proxies(); ++proxy) {
        if (gates_[proxy] == nullptr) continue;
        if (stranger_to_[proxy] == nullptr &&
            stranger_->connect(world_->address_of(proxy), &stranger_to_[proxy]) != Status::ok)
            continue;
        for (int i = 0; i < 20; ++i) {
            std::vector<std::byte> header(random() % (transport::Transport::max_header + 1)),
                payload(random() % 300);
            for (std::byte& each : header)
                each = static_cast<std::byte>(random());
            if (random() % 2 == 0) {
                // The stamp of a real proxy, but for its pass, before something that looks like a message.
                const std::vector<std::byte> kind{static_cast<std::byte>(random() % 40), {}, {}, {}};
                header.insert(header.begin(), kind.begin(), kind.end());
                header = testing::World::stamped(1 + random() % proxies(), proxy + 1, header);
                header[8] ^= std::byte{1};
                header.resize(std::min(header.size(), transport::Transport::max_header));
            }
            (void)stranger_->post(*stranger_to_[proxy], header, payload);
        }
    }
    while (stranger_->progress() > 0) {
    }
}

bool Stage::excused(RankSet involved) const {
    if (sends_fail_ || (involved & hit_) != 0) return true;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
        if ((involved & only(rank)) != 0 && (cut_[proxy_of(rank)] & involved) != 0) return true;
    return false;
}

bool Stage::all_closed() const {
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
        if (!gone(rank)) return false;
    return true;
}

}  // namespace offpath::campaign
