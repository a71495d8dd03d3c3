// The commands for kernels, and their part of the records' format: kinds from 60 on. Included by commands.h,
// which says what holds for all commands. Pure.
#pragma once

#include "control/command_fields.h"

namespace offpath::control {

constexpr std::size_t max_argument_bytes = 4096;
constexpr std::size_t max_kernel_buffers = 16;

struct KernelBuffer {
    BufferRange range;
    std::uint32_t access = 0;  // offpath_access_t
    std::uint32_t zero = 0;
    friend bool operator==(const KernelBuffer&, const KernelBuffer&) = default;
};

// Runs a kernel that was loaded (LoadKernel, messages.h), after those that were started before.
struct Compute {
    static constexpr std::uint16_t kind = 60;
    std::uint64_t kernel = 0;
    std::uint32_t completion = 0;
    Packed<KernelBuffer> buffers;
    std::span<const std::byte> arguments;
};
// After what was started before.
struct UnloadKernel {
    static constexpr std::uint16_t kind = 61;
    std::uint64_t kernel = 0;
};

std::size_t body_bytes(const Compute& command);
std::size_t body_bytes(const UnloadKernel& command);

void write_body(FieldWriter& out, const Compute& command);
void write_body(FieldWriter& out, const UnloadKernel& command);

// null: fine; else what is wrong.
const char* read_body(FieldReader& in, Compute& command);
const char* read_body(FieldReader& in, UnloadKernel& command);

}  // namespace offpath::control
