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

// The state of one op of an instance.
struct OpRun {
    enum class Phase : std::uint8_t { waiting, active, done } phase = Phase::waiting;
    bool has_ready = false;
    bool has_eager = false;
    std::uint32_t remaining = 0;  // dependencies
    std::uint32_t chunk_limit = 0;
    std::uint64_t remote_token = 0, remote_bytes = 0;
    std::vector<std::byte> eager;
    SendTransfer* send = nullptr;
    RecvTransfer* recv = nullptr;
    ReducePass* pass = nullptr;
    std::uint8_t kernel_step = 0;
    std::vector<std::byte> kernel_src, kernel_dst;  // copies of operands that have no pointer
};

struct Instance final : TransferOwner {
    // The tag of transfers that a peer's op has requested. Other transfers have their own op as the tag.
    static constexpr std::uint64_t guest = UINT64_MAX;

    Schedules* home = nullptr;
    const Plan* plan = nullptr;
    Team* team = nullptr;
    std::uint32_t sequence = 0;
    Completion* done = nullptr;
    Status status = Status::ok;
    bool failing = false, queued = false, finishing = false;
    std::size_t left = 0;   // ops not done
    std::size_t holds = 0;  // transfers that have not been given back
    std::vector<OpRun> runs;
    std::vector<schedule::OpId> ready;
    std::vector<Location> slots;
    std::vector<ScratchPool::Buffer> scratch;
    std::unordered_map<std::uint64_t, std::uint64_t> signals;
    std::vector<schedule::OpId> waits;
    std::vector<SendTransfer*> guest_sends;
    std::vector<RecvTransfer*> guest_recvs;

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
