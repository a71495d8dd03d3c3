// The C API's calls for kernels on the device.
#include "base/environment.h"
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"

#include <offpath/compute.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

using namespace offpath;
using namespace offpath::client;

static_assert(OFFPATH_KERNEL_ARGUMENT_BYTES == control::max_argument_bytes &&
              OFFPATH_KERNEL_BUFFERS == control::max_kernel_buffers &&
              OFFPATH_KERNEL_STREAMS == control::max_kernel_streams);
static_assert(OFFPATH_KERNEL_ARGUMENT_BYTES == schedule::max_call_arguments &&
              OFFPATH_KERNEL_BUFFERS == schedule::max_call_buffers &&
              OFFPATH_INOUT == static_cast<int>(schedule::Access::inout));

namespace {

// Makes the path absolute: a daemon on the same system may have another working directory.
std::string path_for_device(const offpath_context& context, const char* path) {
    if (context.attachment.link != nullptr || std::strchr(path, '/') == nullptr) return path;
    const std::unique_ptr<char, void (*)(void*)> whole(realpath(path, nullptr), std::free);
    return whole != nullptr ? whole.get() : path;
}

const char* what_is_wrong(const offpath_kernel_buffer_t& buffer) {
    if (buffer.access < OFFPATH_IN || buffer.access > OFFPATH_INOUT)
        return "its access is none of OFFPATH_IN, OFFPATH_OUT and OFFPATH_INOUT";
    if (buffer.address == nullptr && buffer.bytes != 0) return "it has bytes and no address";
    if (buffer.bytes > schedule::max_slot_bytes) return "it is too large";
    return nullptr;
}

Status check(const char* caller, const void* arguments, std::size_t argument_bytes,
             const offpath_kernel_buffer_t* buffers, std::size_t count) {
    if ((arguments == nullptr && argument_bytes != 0) || (buffers == nullptr && count != 0))
        return Status::invalid;
    if (argument_bytes > OFFPATH_KERNEL_ARGUMENT_BYTES || count > OFFPATH_KERNEL_BUFFERS) {
        log::error(Code::arguments,
                   "{}: {} bytes of arguments and {} buffers: at most {} bytes and {} buffers are accepted",
                   caller, argument_bytes, count, OFFPATH_KERNEL_ARGUMENT_BYTES, OFFPATH_KERNEL_BUFFERS);
        return Status::invalid;
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (const char* wrong = what_is_wrong(buffers[i]); wrong != nullptr) {
            log::error(Code::arguments, "{}: buffer {}: {}", caller, i, wrong);
            return Status::invalid;
        }
    }
    return Status::ok;
}

// Seconds that a run may take; 0: the device's limit. Throws std::invalid_argument.
std::uint32_t limit_of_runs() {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(environment::number("OFFPATH_KERNEL_SECONDS", 0), UINT32_MAX));
}

}  // namespace

extern "C" {

offpath_status_t offpath_kernel_load(offpath_context_h context, const char* path, const char* symbol,
                                     offpath_kernel_h* kernel) {
    return offpath_kernel_load_in(context, path, symbol, 0, kernel);
}

offpath_status_t offpath_kernel_load_in(offpath_context_h context, const char* path, const char* symbol,
                                        uint32_t stream, offpath_kernel_h* kernel) try {
    if (context == nullptr || path == nullptr || symbol == nullptr || kernel == nullptr || *path == '\0' ||
        *symbol == '\0')
        return OFFPATH_ERR_INVALID;
    if (stream >= OFFPATH_KERNEL_STREAMS) {
        log::error(Code::arguments, "offpath_kernel_load_in: stream {}; {} streams are accepted", stream,
                   OFFPATH_KERNEL_STREAMS);
        return OFFPATH_ERR_INVALID;
    }
    control::LoadKernel question{0, path_for_device(*context, path), symbol, stream, limit_of_runs()};
    if (question.path.size() > control::max_path_bytes ||
        question.symbol.size() > control::max_symbol_bytes) {
        log::error(
            Code::arguments,
            "offpath_kernel_load: a path of {} and a symbol of {} bytes; at most {} and {} are accepted",
            question.path.size(), question.symbol.size(), control::max_path_bytes, control::max_symbol_bytes);
        return OFFPATH_ERR_INVALID;
    }
    {
        auto guard = context->lock();
        question.id = ++context->last_kernel;
    }
    context->take_kernel_texts();
    control::KernelReply reply;
    Status status = context->ask(question, question.id, reply);
    if (status != Status::ok) return to_c(status);
    if (reply.status != Status::ok) {
        log::error(Code::kernel, "offpath_kernel_load: {} in {} cannot be had: {}", symbol, path, reply.text);
        return to_c(reply.status);
    }
    auto made = std::make_unique<offpath_kernel>();
    made->context = context;
    made->id = question.id;
    auto guard = context->lock();
    *kernel = made.get();
    context->kernels.emplace(made.get(), std::move(made));
    return OFFPATH_OK;
} catch (const std::invalid_argument& problem) {
    log::error(Code::kernel, "offpath_kernel_load: {}", problem.what());
    return OFFPATH_ERR_INVALID;
} catch (...) {
    return caught("offpath_kernel_load");
}

offpath_status_t offpath_kernel_unload(offpath_kernel_h kernel) try {
    if (kernel == nullptr) return OFFPATH_ERR_INVALID;
    offpath_context& context = *kernel->context;
    auto guard = context.lock();
    const Status status = context.post(control::UnloadKernel{kernel->id});
    if (status == Status::ok) context.ring();
    context.kernels.erase(kernel);
    // If the device is gone, so is the kernel.
    return to_c(status == Status::peer_lost ? Status::ok : status);
} catch (...) {
    return caught("offpath_kernel_unload");
}

offpath_status_t offpath_kernel_last_error(offpath_context_h context, char* text, size_t bytes) try {
    if (context == nullptr || text == nullptr || bytes == 0) return OFFPATH_ERR_INVALID;
    *text = '\0';
    DeviceTexts* const texts = context->attachment.line->texts();
    if (texts == nullptr) return OFFPATH_OK;
    // What was told before the device was lost is still known.
    const Status status = context->lost() ? Status::peer_lost : context->ask_for_kernel_texts();
    texts->wait_printed();
    const std::string whole = texts->last_failure();
    text[whole.copy(text, bytes - 1)] = '\0';
    return to_c(status == Status::peer_lost && !whole.empty() ? Status::ok : status);
} catch (...) {
    return caught("offpath_kernel_last_error");
}

offpath_status_t offpath_compute(offpath_kernel_h kernel, const void* arguments, size_t argument_bytes,
                                 const offpath_kernel_buffer_t* buffers, size_t count,
                                 offpath_request_h* request) try {
    if (kernel == nullptr || request == nullptr) return OFFPATH_ERR_INVALID;
    if (Status status = check("offpath_compute", arguments, argument_bytes, buffers, count);
        status != Status::ok)
        return to_c(status);
    offpath_context& context = *kernel->context;
    auto guard = context.lock();
    offpath_request* made = nullptr;
    if (Status status = context.new_request(&made); status != Status::ok) return to_c(status);
    control::KernelBuffer named[OFFPATH_KERNEL_BUFFERS];
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<std::uintptr_t>(buffers[i].address);
        made->used.push_back({begin, begin + buffers[i].bytes});
        named[i].range = context.resolve(buffers[i].address, buffers[i].bytes);
        named[i].access = static_cast<std::uint32_t>(buffers[i].access);
    }
    control::Compute command;
    command.kernel = kernel->id;
    command.completion = made->slot;
    command.buffers = pack(std::span<const control::KernelBuffer>(named, count));
    command.arguments = std::span(static_cast<const std::byte*>(arguments), argument_bytes);
    if (Status status = context.post(command); status != Status::ok) {
        context.requests.undo(made);
        return to_c(status);
    }
    context.ring();
    ++context.operations;
    *request = made;
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_compute");
}

offpath_status_t offpath_group_compute(offpath_group_h group, offpath_kernel_h kernel, const void* arguments,
                                       size_t argument_bytes, const offpath_kernel_buffer_t* buffers,
                                       size_t count) try {
    if (group == nullptr || kernel == nullptr || kernel->context != group->team->context)
        return OFFPATH_ERR_INVALID;
    if (Status status = check("offpath_group_compute", arguments, argument_bytes, buffers, count);
        status != Status::ok)
        return to_c(status);
    const auto* const bytes = static_cast<const std::byte*>(arguments);
    return to_c(
        record_compute(*group, {kernel->id, {bytes, bytes + argument_bytes}, {buffers, buffers + count}}));
} catch (...) {
    return caught("offpath_group_compute");
}
}
