// The commands for kernels: kinds from 60 on. commands.h includes this header and states the conventions of
// all commands. Pure.
#pragma once

#include "base/field_lists.h"
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
static_assert(sizeof(KernelBuffer) == 32);

// Runs a loaded kernel (LoadKernel, messages.h) after all kernels that were started before.
struct Compute {
    static constexpr std::uint16_t kind = 60;
    std::uint64_t kernel = 0;
    std::uint32_t completion = 0;
    Packed<KernelBuffer> buffers;
    std::span<const std::byte> arguments;
    static void fields(auto& self, auto&& each) {
        each(self.kernel, self.completion);
        each.list(self.buffers, max_kernel_buffers * sizeof(KernelBuffer));
        each.list(self.arguments, max_argument_bytes);
    }
    const char* problem() const {
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            const KernelBuffer buffer = buffers[i];
            if (buffer.access < 1 || buffer.access > 3 || buffer.zero != 0)
                return "a kernel's buffer with an unknown access";
        }
        return nullptr;
    }
};
// Takes effect after all kernels that were started before.
struct UnloadKernel {
    static constexpr std::uint16_t kind = 61;
    std::uint64_t kernel = 0;
    static void fields(auto& self, auto&& each) { each(self.kernel); }
};

}  // namespace offpath::control
