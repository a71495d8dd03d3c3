// A running instance of a plan, and the state of its ops. A team owns its running instances; a plan keeps
// them between runs.
#pragma once

#include "engine/mover/transfer.h"
#include "engine/schedules/headers.h"
#include "engine/schedules/scratch_pool.h"
#include "engine/teams/team.h"
#include "schedule/schedule.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

class ComputeOps;
class Plan;
class ReduceOps;
class Schedules;
struct Instance;

// A reduce op whose operands are copied here tile by tile.
struct ReducePass : Completion {
    enum class Stage : std::uint8_t { idle, loading, storing } stage = Stage::idle;
    bool dead = false;  // its instance has failed
    std::uint8_t moving = 0;
    std::uint64_t token = 0;
    ReduceOps* home = nullptr;
    Instance* instance = nullptr;
    schedule::OpId op = 0;
    std::uint64_t offset = 0;  // of the tile
    std::byte *src_tile = nullptr, *dst_tile = nullptr;
    Status status = Status::ok;
    void reset() { *this = ReducePass{}; }
};

// A compute op's run of its kernel.
struct KernelRun : Completion {
    bool outstanding = false;
    ComputeOps* home = nullptr;
    Instance* instance = nullptr;
    schedule::OpId op = 0;
};

// The state of one op of an instance.
struct OpRun {
    enum class Phase : std::uint8_t { waiting, active, done } phase = Phase::waiting;
    bool has_ready = false;
    bool has_eager = false;
    bool confirmed = false;       // send: not done before its receiver has said Arrived. Recv: says it
    std::uint32_t remaining = 0;  // dependencies
    std::uint32_t chunk_limit = 0;
    std::uint64_t remote_token = 0, remote_bytes = 0;
    std::vector<std::byte> eager;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    ReducePass* pass = nullptr;
    bool copies = false;          // of a small send: its bytes are being copied into `copy`
    std::vector<std::byte> copy;  // its bytes, if they have no pointer
};

// It owns its transfers; the tag of each is the op's id.
struct Instance final : TransferOwner {
    Schedules* home = nullptr;
    const Plan* plan = nullptr;
    Team* team = nullptr;
    std::uint32_t sequence = 0;
    Completion* done = nullptr;
    shared_parts::Word* parts = nullptr;  // of the plan's shared copy; null: this engine makes it alone
    Status status = Status::ok;
    bool failing = false, queued = false, finishing = false;
    std::size_t left = 0;   // ops not done
    std::size_t holds = 0;  // transfers that have not been given back, and kernels that run
    std::vector<OpRun> runs;
    std::vector<std::unique_ptr<KernelRun>> kernels;  // by call of the schedule; kept for the next run
    std::vector<schedule::OpId> ready;
    std::vector<Location> slots;
    std::vector<ScratchPool::Buffer> scratch;
    std::unordered_map<std::uint64_t, std::uint64_t> signals;
    std::vector<schedule::OpId> waits;

    void transfer_over(const TransferEnd& end) override;
    Location locate(const schedule::BufferRef& ref) const { return slots[ref.slot].at(ref.offset); }
};

// A message for an instance that has not started.
struct EarlyForInstance {
    std::array<std::byte, most_schedule_header> bytes;
    std::size_t size = 0;
    std::vector<std::byte> payload;

    std::span<const std::byte> header() const { return std::span(bytes).first(size); }
};

struct SchedulesOfTeam final : TeamPart {
    std::uint32_t next_sequence = 0;
    std::unordered_map<std::uint32_t, std::unique_ptr<Instance>> instances;
    std::unordered_map<std::uint32_t, std::vector<EarlyForInstance>> early;

    bool idle() const override { return instances.empty(); }
    static SchedulesOfTeam& of(const Team& team) {
        return static_cast<SchedulesOfTeam&>(*team.parts[static_cast<std::size_t>(TenantId::schedules)]);
    }
};

}  // namespace offpath::engine
