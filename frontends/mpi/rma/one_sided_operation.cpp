#include "one_sided_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "datatypes/gpu_packing.h"
#include "element_types.h"
#include "requests/offloaded_requests.h"
#include "runtime/losses.h"
#include "window_locks.h"
#include "window_loss.h"

namespace offpath::mpi {
namespace {

using Kind = OneSidedOperation::Kind;

// The device copies operands of up to this size when they are passed to it.
constexpr std::size_t copied_bytes = 4096;
// The most packed bytes that may wait for a flush by the program. Beyond that, this code flushes.
constexpr std::size_t most_held_bytes = std::size_t{256} << 20;
// The most pieces of memory that one call passes.
constexpr std::size_t most_pieces = std::size_t{1} << 20;
// The most pieces that the devices may hold in lists before a flush.
constexpr std::size_t most_pieces_told = std::size_t{1} << 22;
// The most operations whose arguments this code keeps until a flush.
constexpr std::size_t most_unfinished = std::size_t{1} << 16;

// Calls the device for a part of `operation`.
offpath_status_t call_device(Window& window, const OneSidedOperation& operation, const void* origin,
                             void* result, std::size_t bytes, const offpath_place_t& place,
                             offpath_request_h* request) {
    switch (operation.kind) {
        case Kind::put:
            return offpath_put(window.device, origin, bytes, &place, request);
        case Kind::get:
            return offpath_get(window.device, result, bytes, &place, request);
        default:
            break;
    }
    const std::size_t count = bytes / offpath_type_bytes(operation.type);
    if (operation.kind == Kind::accumulate)
        return offpath_accumulate(window.device, origin, count, operation.type, operation.reduction, &place,
                                  request);
    return offpath_get_accumulate(window.device, origin, result, count, operation.type, operation.reduction,
                                  &place, request);
}

// Starts the whole operation, in as many calls as its segments need. `request` is used only if one call is
// enough. `started` says, after an error, whether a part is outstanding all the same.
offpath_status_t call_all(Window& window, const OneSidedOperation& operation, const void* origin,
                          void* result, const std::vector<offpath_segment_t>& segments,
                          offpath_request_h* request, bool& started) {
    std::size_t at = 0;
    for (std::size_t first = 0; first < segments.size();) {
        const std::size_t count = std::min<std::size_t>(segments.size() - first, OFFPATH_MAX_SEGMENTS);
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < count; ++i)
            bytes += segments[first + i].bytes;
        offpath_place_t place{static_cast<std::uint32_t>(operation.target), segments[first].offset, nullptr,
                              0};
        if (count > 1) {
            place.segments = segments.data() + first;
            place.segment_count = static_cast<std::uint32_t>(count);
        }
        const offpath_status_t status = call_device(window, operation, offset_by(origin, at),
                                                    offset_by(result, at), bytes, place, request);
        if (status != OFFPATH_OK) return status;
        started = true;
        at += bytes;
        first += count;
    }
    return OFFPATH_OK;
}

// Makes the window keep the memory of an outstanding operation until a flush of the target.
void keep(Window& window, Window::Held&& held) {
    if (held.block.address == nullptr) return;
    const std::lock_guard lock(window.mutex);
    window.held_bytes += held.block.bytes;
    window.held.push_back(std::move(held));
}

bool inside(const Window& window, int rank, const std::vector<offpath_segment_t>& segments) {
    if (window.dynamic) return true;
    const std::uint64_t size = window.peers[static_cast<std::size_t>(rank)].bytes;
    return std::all_of(segments.begin(), segments.end(), [&](const offpath_segment_t& segment) {
        return segment.offset <= size && segment.bytes <= size - segment.offset;
    });
}

std::string name_of_call(const OffloadedRequest& request) {
    return request.call;
}

// The device has ended the operation. If that is lost, the operation runs again at once.
void end_on_device(OffloadedRequest& request) {
    Window* const window = record_of(request.window);
    if (window == nullptr || window->loss == nullptr) return;
    (void)depart_after(*window, offpath_request_test(request.device));
    request.outlives = note_ended(*window, request.device);
}

int fail_call(const OffloadedRequest& request, offpath_status_t status) {
    if (request.outlives) return MPI_SUCCESS;
    lost_on_team(*request.team, status);
    const int error = error_of(status);
    PMPI_Win_call_errhandler(request.window, error);
    return error;
}

constexpr RequestKind one_sided_request{name_of_call, fail_call, end_on_device};

// `used` is memory that the operation uses until it is done.
int give_request(Window& window, offpath_request_h device, const char* call, const StagingBlock& used,
                 MPI_Request* request) {
    OffloadedRequest& operation = acquire_request(one_sided_request, *window.team);
    operation.call = call;
    operation.window = window.handle;
    operation.outlives = false;
    operation.device = device;
    operation.send_staging = used;
    return publish(operation, OFFPATH_OK, request);
}

}  // namespace

bool Buffer::is_plain() const {
    return elements.shape == nullptr || (elements.plain() && !gpu::are_in_gpu(elements, address));
}

bool in_epoch(Window& window, int rank) {
    const std::lock_guard lock(window.mutex);
    if (window.fence || window.all != Window::Lock::none ||
        window.locks[static_cast<std::size_t>(rank)] != Window::Lock::none)
        return true;
    return std::find(window.started.begin(), window.started.end(), rank) != window.started.end();
}

int set_buffer(Buffer& buffer, const void* address, int count, MPI_Datatype type, bool whole) {
    if (count < 0) return MPI_ERR_COUNT;
    if (type == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
    buffer.elements = elements_of(type, count, whole);
    buffer.address = const_cast<void*>(address);
    return buffer.elements.shape == nullptr ? MPI_ERR_TYPE : MPI_SUCCESS;
}

int set_target(Window& window, OneSidedOperation& operation, const char* call, int rank, MPI_Aint disp,
               int count, MPI_Datatype type, bool whole) {
    if (count < 0) return MPI_ERR_COUNT;
    if (type == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
    rank = target_of(window, rank);
    if (rank < 0 || rank >= window.size) return MPI_ERR_RANK;
    if (!window.dynamic && disp < 0) return MPI_ERR_DISP;
    if (!in_epoch(window, rank))
        return out_of_turn(call, fmt::format("no epoch of this window gives access to rank {}; "
                                             "MPI_Win_fence, MPI_Win_start or a lock begins one",
                                             rank));
    operation.target = rank;
    operation.at = elements_of(type, count, whole);
    if (operation.at.shape == nullptr) return MPI_ERR_TYPE;
    operation.offset =
        static_cast<std::uint64_t>(disp) * window.peers[static_cast<std::size_t>(rank)].disp_unit;
    return MPI_SUCCESS;
}

namespace {

// Returns the smallest number of bytes in a part of `elements`.
std::size_t least_part(const Elements& elements) {
    return elements.plain() ? 1 : elements.bytes() / elements.count;
}

// Returns the part of `whole` that has `bytes` bytes from `at` on.
Buffer part_of(const Buffer& whole, std::size_t at, std::size_t bytes) {
    if (whole.elements.shape == nullptr) return whole;
    if (whole.elements.plain()) {
        return {static_cast<char*>(whole.address) + at, {shape_of(MPI_BYTE), bytes, false}};
    }
    const std::size_t each = least_part(whole.elements);
    const MPI_Aint skipped = static_cast<MPI_Aint>(at / each) * whole.elements.shape->extent;
    return {static_cast<char*>(whole.address) + skipped,
            {whole.elements.shape, bytes / each, whole.elements.whole}};
}

// Returns a number of bytes that is a whole number of elements at target, origin and result, with not too
// many pieces at the target. 0 means everything at once.
std::size_t bytes_at_a_time(const OneSidedOperation& operation) {
    if (operation.at.pieces() <= most_pieces) return 0;
    const std::size_t each = operation.at.bytes() / operation.at.count;
    std::size_t together = each;
    for (const Buffer* buffer : {&operation.origin, &operation.result}) {
        if (buffer->elements.shape == nullptr) continue;
        together = std::lcm(together, least_part(buffer->elements));
        if (together > operation.at.bytes() / 2) return 0;
    }
    const std::size_t wanted = each * std::max<std::size_t>(most_pieces / operation.at.runs().size(), 1);
    return std::max(wanted / together, std::size_t{1}) * together;
}

int start_in_parts(Window& window, const OneSidedOperation& operation, std::size_t step, const char* call,
                   MPI_Request* request) {
    const std::size_t bytes = operation.at.bytes(), each = bytes / operation.at.count;
    const auto part_at = [&](std::size_t at, std::size_t length) {
        OneSidedOperation part = operation;
        const MPI_Aint skipped = static_cast<MPI_Aint>(at / each) * operation.at.shape->extent;
        part.at.count = length / each;
        part.offset += static_cast<std::uint64_t>(skipped);
        part.origin = part_of(operation.origin, at, length);
        part.result = part_of(operation.result, at, length);
        return part;
    };
    // If the first and the last element are inside, all elements between them are too.
    for (const std::size_t at : {std::size_t{0}, bytes - each}) {
        const OneSidedOperation end = part_at(at, each);
        if (!inside(window, end.target, end.at.segments(end.offset))) return raise(window, MPI_ERR_RMA_RANGE);
    }
    for (std::size_t at = 0; at < bytes; at += step) {
        const int error = start(window, part_at(at, std::min(step, bytes - at)), call, nullptr);
        if (error != MPI_SUCCESS) return error;
    }
    if (request == nullptr) return MPI_SUCCESS;
    const offpath_status_t status = flush(window, operation.target);
    return status == OFFPATH_OK ? done_request(window, call, request) : raise(window, error_of(status));
}

int start_by_host(Window& window, const OneSidedOperation& operation, const char* call,
                  MPI_Request* request) {
    const offpath_status_t status = start_departed(window, operation, request != nullptr);
    if (status != OFFPATH_OK) return raise(window, error_of(status));
    return request == nullptr ? MPI_SUCCESS : done_request(window, call, request);
}

}  // namespace

int start(Window& window, OneSidedOperation&& operation, const char* call, MPI_Request* request) {
    const std::size_t bytes = operation.at.bytes();
    const bool sends = operation.origin.elements.shape != nullptr;
    const bool fetches = operation.result.elements.shape != nullptr;
    if ((sends && operation.origin.elements.bytes() != bytes) ||
        (fetches && operation.result.elements.bytes() != bytes))
        return raise(window, MPI_ERR_ARG);
    if (bytes == 0) return request == nullptr ? MPI_SUCCESS : done_request(window, call, request);
    if (const std::size_t step = bytes_at_a_time(operation); step != 0 && step < bytes)
        return start_in_parts(window, operation, step, call, request);
    const std::vector<offpath_segment_t> segments = operation.at.segments(operation.offset);
    if (!inside(window, operation.target, segments)) return raise(window, MPI_ERR_RMA_RANGE);
    // Other threads may depart, or flush, before this or after it.
    LossGuard guard(window);
    if (has_departed(window)) {
        guard.unlock();
        return start_by_host(window, operation, call, request);
    }

    std::vector<char> small;
    Window::Held packed, unpacked;
    packed.target = unpacked.target = operation.target;
    const void* origin = operation.origin.address;
    if (!operation.origin.is_plain()) {
        if (bytes <= copied_bytes) {
            small.resize(bytes);
        } else {
            packed.block = acquire_staging(bytes);
        }
        void* place = bytes <= copied_bytes ? small.data() : packed.block.address;
        if (place == nullptr) {
            guard.unlock();
            return raise(window, MPI_ERR_NO_MEM);
        }
        operation.origin.elements.pack(operation.origin.address, place);
        origin = place;
    }
    void* result = operation.result.address;
    const bool unpacks = !operation.result.is_plain();
    if (unpacks) {
        unpacked.block = acquire_staging(bytes);
        result = unpacked.block.address;
    }
    if (unpacks && result == nullptr) {
        release_staging(packed.block);
        guard.unlock();
        return raise(window, MPI_ERR_NO_MEM);
    }

    offpath_request_h device = nullptr;
    const bool watched = request != nullptr && !unpacks && segments.size() <= OFFPATH_MAX_SEGMENTS;
    bool started = false;
    offpath_status_t status =
        call_all(window, operation, origin, result, segments, watched ? &device : nullptr, started);
    if (status == OFFPATH_OK && unpacks) {
        unpacked.elements = operation.result.elements;
        unpacked.to = operation.result.address;
    }
    if (!started) {
        release_staging(packed.block);
        release_staging(unpacked.block);
    } else if (!watched) {
        keep(window, std::move(packed));
        keep(window, std::move(unpacked));
    }
    if (status == OFFPATH_ERR_PEER_LOST && !started && window.loss != nullptr) {
        status = depart_after(window, status);
        guard.unlock();
        return status == OFFPATH_OK ? start_by_host(window, operation, call, request)
                                    : raise(window, error_of(status));
    }
    const int target = operation.target;
    const bool plain = segments.size() == 1 && request == nullptr && !unpacks &&
                       (!sends || origin == operation.origin.address);
    if (!started || window.loss == nullptr) {
        // Nothing has to outlive a loss.
    } else if (plain && (operation.kind == Kind::put || operation.kind == Kind::get)) {
        note_move(window, {operation.kind == Kind::put ? operation.origin.address : result, bytes,
                           segments[0].offset, target, operation.kind});
    } else {
        note_unfinished(window, std::move(operation), call, device);
    }
    if (status == OFFPATH_ERR_PEER_LOST) status = depart_after(window, status);
    const bool many = window.loss != nullptr &&
                      window.loss->moves.size() + window.loss->unfinished.size() > most_unfinished;
    guard.unlock();
    // An operation that needs several calls, or must be unpacked, is done when this call returns.
    if (status == OFFPATH_OK && request != nullptr && !watched) status = flush(window, target);
    if (status != OFFPATH_OK) return raise(window, error_of(status));
    count_one_sided(bytes);
    if (request != nullptr)
        return watched ? give_request(window, device, call, packed.block, request)
                       : done_request(window, call, request);
    bool full = false;
    {
        const std::lock_guard lock(window.mutex);
        if (segments.size() > 1) window.pieces_told += segments.size();
        full = window.held_bytes > most_held_bytes || window.pieces_told > most_pieces_told;
    }
    if (full || many) status = flush(window, all_targets);
    return status == OFFPATH_OK ? MPI_SUCCESS : raise(window, error_of(status));
}

int done_request(Window& window, const char* call, MPI_Request* request) {
    const offpath_place_t place{static_cast<std::uint32_t>(window.rank), 0, nullptr, 0};
    offpath_request_h device = nullptr;
    const offpath_status_t status = offpath_put(window.device, nullptr, 0, &place, &device);
    return status == OFFPATH_OK ? give_request(window, device, call, {}, request)
                                : raise(window, error_of(status));
}

}  // namespace offpath::mpi
