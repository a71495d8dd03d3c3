// KernelCall: what a compute op calls. A schedule keeps its calls in the order of their ops. A plain value.
#pragma once

#include "schedule/op.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::schedule {

// The limits of the C API (offpath/compute.h).
constexpr std::size_t max_call_arguments = 4096;  // bytes
constexpr std::size_t max_call_buffers = 16;

// How a kernel uses a buffer. The numbers agree with offpath_access_t.
enum class Access : std::uint8_t { in = 1, out = 2, inout = 3 };

// A part of a user slot.
struct CallBuffer {
    BufferRef place = {};
    std::uint64_t bytes = 0;
    Access access = Access::in;
    friend bool operator==(const CallBuffer&, const CallBuffer&) = default;
};

struct KernelCall {
    std::uint64_t kernel = 0;  // as its client has numbered it
    std::vector<std::byte> arguments;
    std::vector<CallBuffer> buffers;
    friend bool operator==(const KernelCall&, const KernelCall&) = default;
    std::uint64_t bytes() const {
        std::uint64_t total = 0;
        for (const CallBuffer& buffer : buffers)
            total += buffer.bytes;
        return total;
    }
};

}  // namespace offpath::schedule
