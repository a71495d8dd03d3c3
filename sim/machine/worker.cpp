#include "sim/machine/worker.h"

#include "sim/machine/cluster.h"
#include "sim/machine/sim_transport.h"

#include <algorithm>

namespace offpath::sim {

Worker::Worker(Cluster& cluster, Kind kind, std::uint32_t number, std::uint32_t node, Core& core,
               const engine::Config& config, std::uint64_t seed)
    : cluster_(cluster),
      kind_(kind),
      number_(number),
      node_(node),
      core_(core),
      work_(kind == Kind::proxy ? cluster.platform().device : cluster.platform().host) {
    transport_ = std::make_unique<SimTransport>(cluster, *this);
    engine_ = std::make_unique<engine::Engine>(
        *transport_, number + 1, config,
        engine::Surroundings{.clock = &cluster.queue(), .seed = seed, .yields = false});
}

Worker::~Worker() {
    engine_->close();
    transport_.reset();
}

Time Worker::present() const {
    return cluster_.queue().now() + charged_;
}

void Worker::submit(Time time, std::function<void()> command) {
    arriving_.push_back(std::move(command));
    cluster_.queue().at(time, &Worker::take_command, this);
}

void Worker::take_command(void* self, std::uint64_t) {
    auto& worker = *static_cast<Worker*>(self);
    worker.commands_.push_back(std::move(worker.arriving_.front()));
    worker.arriving_.pop_front();
    worker.wake();
}

void Worker::wake() {
    if (planned_ || in_round_) return;
    if (!serves() && !transport_->has_free_events()) return await_turn();
    const Time now = cluster_.queue().now();
    const Platform& platform = cluster_.platform();
    // A core that is busy with another proxy, or has just been, is awake.
    const bool sleeps =
        kind_ == Kind::proxy && core_.free_at() <= now && now > idle_since_ + from_seconds(platform.spin_s);
    plan(now + (sleeps ? from_seconds(platform.wake_s) : 0));
}

void Worker::plan(Time time) {
    planned_ = true;
    cluster_.queue().at(std::max(time, core_.free_at()), &Worker::go_round, this);
}

void Worker::go_round(void* self, std::uint64_t) {
    auto& worker = *static_cast<Worker*>(self);
    worker.planned_ = false;
    if (!worker.serves() && !worker.transport_->has_free_events()) return worker.await_turn();
    // Another worker of this core may have taken it meanwhile.
    if (worker.core_.free_at() > worker.cluster_.queue().now()) return worker.plan(0);
    worker.round();
}

bool Worker::has_its_turn() const {
    const std::uint32_t rank = cluster_.rank_of_library(number_);
    Turns* const turns = cluster_.turns_of(rank);
    if (turns == nullptr) return true;
    const Core::Process process = cluster_.process_of(rank);
    return !turns->takes_part(process) || turns->runs(process);
}

void Worker::await_turn() {
    if (awaits_turn_ || !inside_) return;
    awaits_turn_ = true;
    const std::uint32_t rank = cluster_.rank_of_library(number_);
    cluster_.turns_of(rank)->when_it_runs(cluster_.process_of(rank), &Worker::take_turn, this);
}

void Worker::take_turn(void* self, std::uint64_t) {
    auto& worker = *static_cast<Worker*>(self);
    worker.awaits_turn_ = false;
    worker.wake();
}

void Worker::round() {
    in_round_ = true;
    const auto begin = [this] {
        charge_seconds(work_.round_s + (core_.taken_by(this) ? core_.turns_to_come() * work_.switch_s : 0));
    };
    // A round for questions that a library would not ask costs only what follows from them.
    const bool free = commands_.empty() && transport_->has_free_events() && !transport_->has_events();
    if (!free) begin();
    bool moved = !commands_.empty();
    while (!commands_.empty()) {
        const std::function<void()> command = std::move(commands_.front());
        commands_.pop_front();
        command();
    }
    moved |= transport_->progress() > 0;
    moved |= engine_->advance();
    charge_counted();
    if (free && charged_ > 0) begin();
    in_round_ = accessed_ = false;
    const Time end = core_.step(charged_);
    busy_ += charged_;
    charged_ = 0;
    idle_since_ = end;
    if (kind_ == Kind::proxy) core_.take_turns_until(this, end + from_seconds(cluster_.platform().spin_s));
    if (moved || engine_->has_work() || transport_->has_free_events() ||
        (serves() && transport_->has_events()))
        plan(end);
    else if (transport_->has_events())
        await_turn();
}

void Worker::charge_counted() {
    const engine::Counters& counters = engine_->counters();
    // Without a pointer to host memory, SimMemory has charged both halves of each copy.
    if (kind_ == Kind::library || cluster_.platform().memory == HostMemoryKind::map)
        charge(transfer_time(counters.bytes_local - counted_copies_, work_.copy_Bps));
    charge(transfer_time(counters.bytes_reduced - counted_reductions_, work_.reduce_Bps));
    counted_copies_ = counters.bytes_local;
    counted_reductions_ = counters.bytes_reduced;
}

void Worker::enter() {
    if (!inside_) core_.begin_turns();
    inside_ = true;
    wake();
}

void Worker::leave() {
    if (inside_) core_.end_turns();
    inside_ = false;
}

Time Worker::call_once(std::function<void()> command) {
    commands_.push_back(std::move(command));
    inside_ = true;
    round();
    inside_ = false;
    return core_.free_at();
}

}  // namespace offpath::sim
