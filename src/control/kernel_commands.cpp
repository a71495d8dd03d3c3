#include "control/kernel_commands.h"

namespace offpath::control {

static_assert(sizeof(KernelBuffer) == 32);

std::size_t body_bytes(const Compute& c) {
    return 8 + 4 + 4 + c.buffers.bytes().size() + 4 + c.arguments.size();
}
std::size_t body_bytes(const UnloadKernel&) {
    return 8;
}

void write_body(FieldWriter& out, const Compute& c) {
    out.value(c.kernel);
    out.value(c.completion);
    out.blob(c.buffers.bytes());
    out.blob(c.arguments);
}

void write_body(FieldWriter& out, const UnloadKernel& c) {
    out.value(c.kernel);
}

const char* read_body(FieldReader& in, Compute& c) {
    c.kernel = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    const auto buffers = in.blob(max_kernel_buffers * sizeof(KernelBuffer));
    c.buffers = Packed<KernelBuffer>(buffers);
    c.arguments = in.blob(max_argument_bytes);
    if (!in.ok() || buffers.size() % sizeof(KernelBuffer) != 0)
        return "a kernel's start with a wrong list of buffers, or too many arguments";
    for (std::size_t i = 0; i < c.buffers.size(); ++i) {
        const KernelBuffer buffer = c.buffers[i];
        if (buffer.access < 1 || buffer.access > 3 || buffer.zero != 0)
            return "a kernel's buffer with an unknown access";
    }
    return nullptr;
}

const char* read_body(FieldReader& in, UnloadKernel& c) {
    c.kernel = in.value<std::uint64_t>();
    return nullptr;
}

}  // namespace offpath::control
