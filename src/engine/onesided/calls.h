// What an engine is asked to do on windows.
#pragma once

#include "engine/shared/identifiers.h"
#include "memory/host_memory.h"
#include "rma/operation.h"
#include "schedule/op.h"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::engine {

// An operation on a window. Operands of at most rma::inline_bytes may be given in `inlined` instead of
// `origin`. Segments are pieces of the target, in the order of the operands; none: `bytes` at `offset`.
struct OneSidedCall {
    rma::OpKind kind = rma::OpKind::put;
    schedule::DataType type = schedule::DataType::none;  // of updates
    std::uint8_t reduction = 0;                          // schedule::Reduction, rma::replace or rma::no_op
    std::uint32_t target = 0;
    std::uint64_t offset = 0, bytes = 0;
    memory::HostRange origin, result;
    bool watched = false;  // its error is its own: no flush tells of it
    bool ordered = false;  // it, and what follows, after all before it on this target
    std::vector<std::byte> inlined;
    std::vector<rma::Segment> segments;
};
constexpr std::uint32_t every_target = UINT32_MAX;

// An operation on a window that reached this engine without the origin's (rma/direct.h), as it was said.
struct DirectOperation {
    JobId job;
    std::uint64_t team = 0, window = 0;
    std::uint32_t dest = 0;                    // rank of the target in the team
    std::uint32_t origin = 0, origin_job = 0;  // the caller's rank, as it says, and in the job, as is proved
    std::uint8_t operation = 0, type = 0, reduction = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t element = 0,
                  stride = 0;  // of a strided put or get, in bytes; 0: the bytes lie side by side
    std::span<const std::byte> operands;
};

}  // namespace offpath::engine
