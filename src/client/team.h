// The client's teams and groups. The context owns them.
#pragma once

#include "client/request.h"
#include "client/schedule_cache.h"
#include "collectives/collectives.h"
#include "control/commands.h"

#include <offpath/compute.h>
#include <offpath/primitives.h>
#include <offpath/team.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct offpath_team {
    offpath_context* context = nullptr;
    std::uint64_t id = 0;
    std::uint32_t rank = 0, size = 1;
    std::vector<std::uint32_t> job_ranks;  // by rank
    std::uint32_t sequence = 0;            // starts so far
    std::uint32_t groups = 0;              // groups that refer to it
    std::uint64_t windows = 0;             // created so far
    std::uint32_t open_windows = 0;
    bool destroyed = false;

    offpath::collectives::TeamShape shape() const { return {rank, size}; }
};

struct offpath_group {
    enum class State { recording, ready, unusable };
    struct Step {
        enum class Kind : std::uint8_t { send, recv, compute, barrier } kind;
        std::uint32_t peer = 0, tag = 0;
        void* buffer = nullptr;
        std::size_t bytes = 0;
        std::size_t call = 0;  // compute: in `calls`
    };
    struct Call {
        std::uint64_t kernel = 0;
        std::vector<std::byte> arguments;
        std::vector<offpath_kernel_buffer_t> buffers;
    };
    offpath_team* team = nullptr;
    State state = State::recording;
    std::vector<Step> steps;
    std::vector<Call> calls;
    std::uint32_t numbered = 0;                                   // steps that are no barriers
    std::vector<std::pair<std::uint32_t, std::uint32_t>> orders;  // (earlier, later) steps
    struct Buffer {
        void* address = nullptr;
        std::size_t bytes = 0;
    };
    std::vector<Buffer> buffers;  // by slot
    std::vector<offpath::control::BufferRange> ranges;
    std::vector<offpath_request::Used> used;
    offpath::client::RegisteredSchedule schedule;
    offpath_request* latest = nullptr;
};

namespace offpath::client {

// Informs the proxy and makes the handle; the caller has checked the arguments. Needs the context's lock.
Status create_team(offpath_context& context, std::span<const std::uint32_t> ranks, std::uint32_t rank,
                   std::uint64_t id, offpath_team** team);
// Records a checked run of a kernel. invalid: the group's recording has ended.
Status record_compute(offpath_group& group, offpath_group::Call call);
// A group of the team has ended.
void release_group(offpath_team& team);

}  // namespace offpath::client
