// The calls on windows that an engine accepts.
#pragma once

#include "engine/shared/identifiers.h"
#include "memory/host_memory.h"
#include "rma/direct.h"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::engine {

// An operation on a window. Operands of at most rma::inline_bytes may be in `inlined` instead of `origin`.
// Segments are pieces of the target, in the order of the operands. Without segments the target is one piece.
struct OneSidedCall : rma::Access {
    memory::HostRange origin, result;
    bool watched = false;  // its own completion reports its error; flushes do not
    std::vector<std::byte> inlined;
    std::vector<rma::Segment> segments;
};
constexpr std::uint32_t every_target = UINT32_MAX;

// A window operation that reached this engine without the origin's proxy, unchecked.
struct DirectAccess : rma::direct::StridedAccess {
    JobId job;
    std::uint64_t team = 0, window = 0;
    std::uint32_t origin = 0, origin_job = 0;  // the caller's rank in team (claimed) and job (proved)
    std::span<const std::byte> operands;
};

}  // namespace offpath::engine
