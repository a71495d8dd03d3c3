// The calls on windows that an engine accepts.
#pragma once

#include "engine/shared/identifiers.h"
#include "memory/host_memory.h"
#include "rma/operation.h"
#include "schedule/op.h"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::engine {

// An operation on a window. Operands of at most rma::inline_bytes may be in `inlined` instead of `origin`.
// Segments are pieces of the target, in the order of the operands. Without segments the target is `bytes` at
// `offset`.
struct OneSidedCall {
    rma::OpKind kind = rma::OpKind::put;
    schedule::DataType type = schedule::DataType::none;  // of updates
    std::uint8_t reduction = 0;                          // schedule::Reduction, rma::replace or rma::no_op
    std::uint32_t target = 0;
    std::uint64_t offset = 0, bytes = 0;
    memory::HostRange origin, result;
    bool watched = false;  // its own completion reports its error; flushes do not
    bool ordered = false;  // it and later operations start after all earlier ones on this target
    std::vector<std::byte> inlined;
    std::vector<rma::Segment> segments;
};
constexpr std::uint32_t every_target = UINT32_MAX;

// A window operation that reached this engine without the origin's proxy (rma/direct.h), unchecked.
struct DirectOperation {
    JobId job;
    std::uint64_t team = 0, window = 0;
    std::uint32_t dest = 0;                    // rank of the target in the team
    std::uint32_t origin = 0, origin_job = 0;  // the caller's rank in team (claimed) and job (proved)
    std::uint8_t operation = 0, type = 0, reduction = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t element = 0,
                  stride = 0;  // of a strided put or get, in bytes; 0: the bytes lie side by side
    std::span<const std::byte> operands;
};

}  // namespace offpath::engine
