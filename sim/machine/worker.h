// Worker: one engine and the core that it runs on: a proxy on a device, or a rank's own library on the host.
//
// A proxy goes round whenever there is something to do. A rank's library goes round only while its rank is in
// one of its calls (enter(), leave()): that is what offload removes.
//
// What the engine does in a round costs time of the core. The transport and the memory add it up (charge()),
// so what is sent in the middle of a round leaves in the middle of it.
//
// Ownership: owns its engine and its transport. Threads: one.
#pragma once

#include "engine/engine.h"
#include "sim/machine/platform.h"
#include "sim/network/network.h"
#include "sim/servers/core.h"

#include <deque>
#include <functional>
#include <memory>

namespace offpath::sim {

class SimTransport;
class Cluster;

class Worker {
  public:
    enum class Kind : std::uint8_t { proxy, library };

    Worker(Cluster& cluster, Kind kind, std::uint32_t number, std::uint32_t node, Core& core,
           const engine::Config& config, std::uint64_t seed);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    engine::Engine& engine() { return *engine_; }
    SimTransport& transport() { return *transport_; }
    Core& core() { return core_; }
    const Platform::Work& work() const { return work_; }
    std::uint32_t node() const { return node_; }
    std::uint32_t number() const { return number_; }

    // Runs `command` in a round that begins at `time` or later.
    void submit(Time time, std::function<void()> command);
    Kind kind() const { return kind_; }
    // Whether it handles what comes: a library only during its rank's calls, and in its rank's turns.
    bool serves() const { return kind_ == Kind::proxy || (inside_ && has_its_turn()); }
    // Something has arrived.
    void wake();
    // Library only: its rank is in a call, or out of it again.
    void enter();
    void leave();
    // Library only: the rank starts an operation and does not wait for it. Returns when the call ends.
    Time call_once(std::function<void()> command);

    // The core works for `work` more in this round.
    void charge(Time work) { charged_ += work; }
    // An operation is started. Of several accesses to windows in one round, the first costs all.
    void charge_operation(bool accesses) {
        if (!accesses || !accessed_) charge_seconds(work_.operation_s);
        accessed_ |= accesses;
    }
    void charge_seconds(double seconds) { charged_ += from_seconds(seconds); }
    // The present moment of the round.
    Time present() const;
    Time busy() const { return busy_; }

  private:
    static void go_round(void* worker, std::uint64_t);
    static void take_command(void* worker, std::uint64_t);
    bool has_its_turn() const;
    // A rank that waits in a call looks again in its next turn.
    void await_turn();
    static void take_turn(void* worker, std::uint64_t);
    void round();
    void plan(Time time);
    // The costs of what the engine only counts.
    void charge_counted();

    Cluster& cluster_;
    const Kind kind_;
    const std::uint32_t number_, node_;
    Core& core_;
    const Platform::Work& work_;
    std::unique_ptr<SimTransport> transport_;
    std::unique_ptr<engine::Engine> engine_;
    std::deque<std::function<void()>> commands_, arriving_;
    bool planned_ = false, inside_ = false, in_round_ = false, accessed_ = false, awaits_turn_ = false;
    Time charged_ = 0, busy_ = 0, idle_since_ = 0;
    std::uint64_t counted_copies_ = 0, counted_reductions_ = 0;
};

}  // namespace offpath::sim
