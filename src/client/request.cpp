#include "client/request.h"

#include "client/context.h"
#include "trace/trace.h"

#include <cstring>
#include <utility>

namespace offpath::client {

RequestTable::RequestTable(control::ClientChannel& channel)
    : channel_(channel), owners_(channel.completions(), nullptr) {
    free_slots_.reserve(owners_.size());
    for (std::uint32_t slot = channel.completions(); slot > 0; --slot)
        free_slots_.push_back(slot - 1);
}

offpath_request* RequestTable::fresh(offpath_context* context) {
    if (free_requests_.empty()) free_requests_.push_back(&pool_.emplace_back());
    offpath_request* request = free_requests_.back();
    free_requests_.pop_back();
    request->context = context;
    request->receives = false;
    request->freed = false;
    request->traced = false;
    request->earlier = Status::ok;
    request->window = nullptr;
    request->flushes = false;
    request->message = {};
    request->used.clear();
    request->shared = {};
    request->large = false;
    return request;
}

offpath_request* RequestTable::start(offpath_context* context) {
    if (free_slots_.empty()) sweep();
    if (free_slots_.empty()) return nullptr;
    offpath_request* request = fresh(context);
    request->slot = free_slots_.back();
    free_slots_.pop_back();
    owners_[request->slot] = request;
    // The release of the command that names the slot orders this store before the proxy's.
    control::CompletionEntry& entry = channel_.completion(request->slot);
    entry.parts.store(0, std::memory_order_relaxed);
    entry.word.store(0, std::memory_order_relaxed);
    request->result.store(OFFPATH_IN_PROGRESS, std::memory_order_relaxed);
    return request;
}

offpath_request* RequestTable::finished(offpath_context* context, Status status) {
    offpath_request* request = fresh(context);
    request->result.store(to_c(status), std::memory_order_release);
    return request;
}

void RequestTable::undo(offpath_request* request) {
    if (request->traced) [[unlikely]]
        trace::end(trace::Kind::handed_over, request->trace_id);
    owners_[request->slot] = nullptr;
    free_slots_.push_back(request->slot);
    request->owned.reset();
    request->result.store(OFFPATH_ERR_CANCELED, std::memory_order_relaxed);
    free_requests_.push_back(request);
}

void RequestTable::uncount(offpath_request& request, Status status) {
    offpath_window* const window = std::exchange(request.window, nullptr);
    if (window == nullptr) return;
    if (request.flushes) return flush_over(*window, request, status);
    --window->watched;
    --window->targets[request.target].watched;
    if (request.updates) --window->targets[request.target].watched_updates;
}

bool RequestTable::help(offpath_request& request) {
    const offpath_request::SharedCopy& copy = request.shared;
    if (copy.bytes == 0 || !pending(request)) return false;
    const shared_parts::Part part = shared_parts::take(channel_.completion(request.slot).parts, copy.bytes);
    if (part.bytes == 0) return false;
    // A program whose buffers overlap is wrong, but gets no worse result than from its proxy.
    std::memmove(copy.to + part.offset, copy.from + part.offset, part.bytes);
    copied_ += part.bytes;
    return true;
}

bool RequestTable::take(offpath_request* request) {
    if (request->seen() != Status::in_progress) return true;
    control::CompletionEntry& entry = channel_.completion(request->slot);
    const std::uint32_t word = entry.word.load(std::memory_order_acquire);
    if (word == 0) return false;
    const Status own = control::completion_status(word);
    const Status status = is_error(request->earlier) ? request->earlier : own;
    if (request->receives)
        request->message = {entry.source, entry.tag, static_cast<std::size_t>(entry.bytes)};
    (status == Status::ok ? completed_ : failed_)++;
    uncount(*request, own);
    if (request->traced) [[unlikely]]
        trace::end(trace::Kind::handed_over, request->trace_id);
    owners_[request->slot] = nullptr;
    free_slots_.push_back(request->slot);
    request->owned.reset();
    request->result.store(to_c(status), std::memory_order_release);
    if (request->freed) free_requests_.push_back(request);
    return true;
}

void RequestTable::free(offpath_request* request) {
    const bool finished = take(request);
    request->freed = true;
    if (finished) free_requests_.push_back(request);
}

std::uint32_t RequestTable::sweep() {
    std::uint32_t outstanding = 0;
    for (offpath_request* owner : owners_)
        if (owner != nullptr && !take(owner)) ++outstanding;
    return outstanding;
}

std::uint32_t RequestTable::fail_all(Status status) {
    std::uint32_t count = 0;
    for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
        if (owners_[slot] == nullptr) continue;
        std::uint32_t pending = 0;
        count += channel_.completion(static_cast<std::uint32_t>(slot))
                     .word.compare_exchange_strong(pending, control::completion_word(status));
    }
    return count;
}

}  // namespace offpath::client

using offpath::Status;
using offpath::to_c;

extern "C" {

offpath_status_t offpath_request_test(offpath_request_h request) {
    if (request == nullptr) return OFFPATH_ERR_INVALID;
    return to_c(request->context->test(*request));
}

offpath_status_t offpath_request_wait(offpath_request_h request) {
    if (request == nullptr) return OFFPATH_ERR_INVALID;
    return to_c(request->context->wait(*request));
}

offpath_status_t offpath_request_wait_for(offpath_request_h request, uint64_t nanoseconds) {
    if (request == nullptr) return OFFPATH_ERR_INVALID;
    return to_c(request->context->wait_for(*request, nanoseconds));
}

offpath_status_t offpath_request_message(offpath_request_h request, offpath_message_t* message) {
    if (request == nullptr || message == nullptr || !request->receives) return OFFPATH_ERR_INVALID;
    if (request->seen() != Status::ok && request->seen() != Status::truncated) return OFFPATH_ERR_INVALID;
    *message = request->message;
    return OFFPATH_OK;
}

offpath_status_t offpath_request_free(offpath_request_h request) {
    if (request == nullptr) return OFFPATH_ERR_INVALID;
    auto guard = request->context->lock();
    request->context->requests.free(request);
    return OFFPATH_OK;
}
}
