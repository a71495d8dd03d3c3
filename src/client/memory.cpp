// The memory calls of the C API.
#include "base/file_size.h"
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"
#include "memory/shareable.h"

#include <offpath/memory.h>

#include <atomic>

using namespace offpath;
using namespace offpath::client;

namespace {

bool overlaps(const offpath_request& request, std::uintptr_t begin, std::uintptr_t end) {
    for (const offpath_request::Used& used : request.used)
        if (used.begin < end && begin < used.end) return true;
    return false;
}

// Sleeps until no operation of this process uses [begin, end).
void wait_for_users(offpath_context& context, std::uintptr_t begin, std::uintptr_t end) {
    context.sleep_until([&] {
        bool in_use = false;
        context.requests.for_each_outstanding(
            [&](const offpath_request& request) { in_use |= overlaps(request, begin, end); });
        return !in_use;
    });
}

// Call it after the last use. A device that is gone no longer touches the memory, so peer_lost counts as
// success.
Status revoke(offpath_context& context, std::uint64_t region) {
    control::RegionReply reply;
    Status status = context.ask(control::RevokeRegion{region}, {}, region, reply);
    if (status == Status::ok) status = reply.status;
    if (context.attachment.exports != nullptr) context.attachment.exports->remove(region);
    return status == Status::peer_lost ? Status::ok : status;
}

// Makes the allocation a region of the device. A local device maps the allocation too; a remote device
// imports its registration.
Status share(offpath_context& context, const memory::HostAllocator::Allocation& allocation) {
    const auto address = reinterpret_cast<std::uint64_t>(allocation.address);
    ExportedRegions* const exports = context.attachment.exports.get();
    control::RegionReply reply;
    Status status;
    if (exports == nullptr) {
        const control::RegisterRegion question{allocation.region, address, allocation.bytes};
        status = context.ask(question, std::span(&allocation.fd, 1), allocation.region, reply);
    } else {
        std::span<const std::byte> blob;
        std::string problem;
        status = exports->add(allocation.region, allocation.address, allocation.bytes, blob, problem);
        if (status == Status::ok && blob.size() > control::max_blob_bytes) status = Status::unsupported;
        if (status == Status::ok) {
            const control::RegisterExported question{
                allocation.region, address, allocation.bytes, {blob.begin(), blob.end()}};
            status = context.ask(question, {}, allocation.region, reply);
        } else {
            log::warn(Code::exported_memory, "{} bytes cannot be exported to the device: {}",
                      allocation.bytes, problem);
        }
    }
    if (status == Status::ok) status = reply.status;
    if (status == Status::ok) {
        status = context.allocator.publish(allocation);
        if (status != Status::ok) (void)revoke(context, allocation.region);
    } else if (exports != nullptr) {
        exports->remove(allocation.region);
    }
    return status;
}

// Returns false if the arguments describe no memory.
bool describe(offpath_context* context, void* address, std::size_t bytes,
              std::unique_ptr<offpath_region>& made) {
    if (context == nullptr || address == nullptr || bytes == 0 || bytes > schedule::max_slot_bytes)
        return false;
    made = std::make_unique<offpath_region>();
    made->context = context;
    made->begin = reinterpret_cast<std::uintptr_t>(address);
    made->end = made->begin + bytes;
    return made->end > made->begin;
}

offpath_region* keep(offpath_context& context, std::unique_ptr<offpath_region> made) {
    auto guard = context.lock();
    offpath_region* const region = made.get();
    context.regions.emplace(region, std::move(made));
    return region;
}

// Once: a caller may try again and again, and has memory of another kind instead.
void warn_of_limit(std::size_t bytes) {
    static std::atomic_flag said;
    if (!said.test_and_set())
        log::warn(Code::resources,
                  "the limit of file sizes (ulimit -f) allows no {} bytes that the device maps too: such "
                  "memory stays ordinary, which costs copies",
                  bytes);
}

}  // namespace

extern "C" {

offpath_status_t offpath_mem_alloc(offpath_context_h context, size_t bytes, void** address) try {
    if (context == nullptr || address == nullptr || bytes == 0 || bytes > schedule::max_slot_bytes)
        return OFFPATH_ERR_INVALID;
    if (!is_file_size_allowed(bytes)) {
        warn_of_limit(bytes);
        return OFFPATH_ERR_MEMORY;
    }
    memory::HostAllocator::Allocation allocation;
    if (Status status = context->allocator.allocate(bytes, allocation); status != Status::ok) {
        log::error(Code::resources, "offpath_mem_alloc: {} bytes: {}", bytes, to_string(status));
        return to_c(status);
    }
    if (context->attachment.takes_regions()) {
        Status status = share(*context, allocation);
        // A remote device stages memory that it cannot import.
        if (context->attachment.link != nullptr && status != Status::peer_lost) status = Status::ok;
        if (status != Status::ok) {
            log::error(Code::resources, "offpath_mem_alloc: the device did not take {} bytes: {}", bytes,
                       to_string(status));
            context->allocator.release(allocation);
            return to_c(status);
        }
    }
    *address = allocation.address;
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_mem_alloc");
}

offpath_status_t offpath_mem_free(offpath_context_h context, void* address) try {
    if (context == nullptr || address == nullptr) return OFFPATH_ERR_INVALID;
    const bool shared = context->resolve(address, 1).region != 0;
    memory::HostAllocator::Allocation allocation;
    if (Status status = context->allocator.withdraw(address, allocation); status != Status::ok)
        return to_c(status);
    const auto begin = reinterpret_cast<std::uintptr_t>(allocation.address);
    wait_for_users(*context, begin, begin + allocation.bytes);
    Status status = Status::ok;
    if (shared) status = revoke(*context, allocation.region);
    if (status != Status::ok)
        log::error(Code::operation, "offpath_mem_free: the device answered: {}", to_string(status));
    context->allocator.release(allocation);
    return to_c(status);
} catch (...) {
    return caught("offpath_mem_free");
}

offpath_status_t offpath_mem_keep(offpath_context_h context, void* address) {
    if (context == nullptr || address == nullptr) return OFFPATH_ERR_INVALID;
    return to_c(context->allocator.keep(address));
}

offpath_status_t offpath_mem_register(offpath_context_h context, void* address, size_t bytes,
                                      offpath_region_h* region) try {
    std::unique_ptr<offpath_region> made;
    if (region == nullptr || !describe(context, address, bytes, made)) return OFFPATH_ERR_INVALID;
    // The back ends for ordinary memory need no preparation. For them, all that a region promises is the wait
    // when it ends.
    if (context->attachment.exports != nullptr && context->resolve(address, bytes).region == 0) {
        const auto adopted = context->allocator.adopt(address, bytes);
        if (share(*context, adopted) == Status::ok) made->exported = adopted.region;
    }
    *region = keep(*context, std::move(made));
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_mem_register");
}

offpath_status_t offpath_mem_share(offpath_context_h context, int fd, void* address, size_t bytes,
                                   offpath_region_h* region) try {
    std::unique_ptr<offpath_region> made;
    if (region == nullptr || fd < 0 || !describe(context, address, bytes, made)) return OFFPATH_ERR_INVALID;
    if (context->attachment.takes_regions()) {
        auto adopted = context->allocator.adopt(address, bytes);
        adopted.fd = fd;
        const Status status = share(*context, adopted);
        if (status == Status::ok) made->exported = adopted.region;
        // The device maps it, so target regions may.
        if (status == Status::ok && context->attachment.exports == nullptr)
            memory::shareable::note_copy(address, bytes, fd);
        // A remote device stages memory that it cannot import.
        const bool must = context->attachment.link == nullptr || status == Status::peer_lost;
        // The status is all that this call reports; the caller knows what the memory was for.
        if (status != Status::ok && must) return to_c(status);
    }
    *region = keep(*context, std::move(made));
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_mem_share");
}

offpath_status_t offpath_mem_deregister(offpath_region_h region) try {
    if (region == nullptr) return OFFPATH_ERR_INVALID;
    offpath_context& context = *region->context;
    if (region->exported != 0) context.allocator.retract(region->exported);
    if (region->exported != 0 && context.attachment.exports == nullptr)
        memory::shareable::forget(reinterpret_cast<const void*>(region->begin));
    wait_for_users(context, region->begin, region->end);
    const Status status = region->exported != 0 ? revoke(context, region->exported) : Status::ok;
    if (status != Status::ok)
        log::error(Code::operation, "offpath_mem_deregister: the device answered: {}", to_string(status));
    auto guard = context.lock();
    context.regions.erase(region);
    return to_c(status);
} catch (...) {
    return caught("offpath_mem_deregister");
}

offpath_status_t offpath_mem_query(offpath_context_h context, const void* address, size_t bytes,
                                   offpath_back_end_t* back_end, offpath_progress_t* progress) try {
    if (context == nullptr || address == nullptr || back_end == nullptr || progress == nullptr)
        return OFFPATH_ERR_INVALID;
    const control::Welcome& welcome = context->attachment.welcome;
    const bool region = context->resolve(address, bytes).region != 0;
    const offpath_back_end_t of_regions =
        context->attachment.exports != nullptr ? OFFPATH_BACK_END_XGVMI : OFFPATH_BACK_END_MAP;
    *back_end = region ? of_regions : static_cast<offpath_back_end_t>(welcome.back_end);
    *progress = region ? OFFPATH_PROGRESS_DEVICE : static_cast<offpath_progress_t>(welcome.progress);
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_mem_query");
}

const char* offpath_back_end_string(offpath_back_end_t back_end) {
    switch (back_end) {
        case OFFPATH_BACK_END_XGVMI:
            return "xgvmi";
        case OFFPATH_BACK_END_MAP:
            return "map";
        case OFFPATH_BACK_END_CMA:
            return "cma";
        case OFFPATH_BACK_END_STAGED:
            return "staged";
    }
    return "unknown";
}
}
