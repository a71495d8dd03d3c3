// Windows: creation, destruction, flushes and locks.
#include "client/windows.h"

#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"

#include "rma/ledger.h"

#include <offpath/loss.h>
#include <offpath/memory.h>

#include <algorithm>
#include <utility>

using namespace offpath;
using namespace offpath::client;

namespace {

Status wait_and_free(offpath_context& context, offpath_request* request) {
    const Status status = context.wait(*request);
    auto guard = context.lock();
    context.requests.free(request);
    return status;
}

// Posts a command that has a completion. Needs the lock.
template <typename Command>
Status post_locked(offpath_context& context, Command command, offpath_request** request) {
    offpath_request* made = nullptr;
    if (Status status = context.new_request(&made); status != Status::ok) return status;
    command.completion = made->slot;
    if (Status status = context.post(command); status != Status::ok) {
        context.requests.undo(made);
        return status;
    }
    context.ring();
    *request = made;
    return Status::ok;
}

template <typename Command>
Status post(offpath_context& context, const Command& command, offpath_request** request) {
    auto guard = context.lock();
    return post_locked(context, command, request);
}

template <typename Command>
Status post_and_wait(offpath_context& context, const Command& command) {
    offpath_request* request = nullptr;
    const Status status = post(context, command, &request);
    return status == Status::ok ? wait_and_free(context, request) : status;
}

Status barrier(offpath_team_h team) {
    offpath_request_h request = nullptr;
    const Status status = from_c(offpath_ibarrier(team, &request));
    return status == Status::ok ? wait_and_free(*team->context, request) : status;
}

control::DestroyWindow destroy_of(const offpath_window& window) {
    control::DestroyWindow command;
    command.team = window.team->id;
    command.window = window.id;
    return command;
}

// Call it when `count` operations without a request are complete.
void give_back_unwatched(offpath_window& window, std::uint32_t count) {
    // Another thread's flush may have counted some of them already.
    count = std::min(count, window.unwatched);
    window.unwatched -= count;
    window.context->unwatched -= count;
}

bool is_mapped(offpath_context& context, const void* base, std::size_t bytes) {
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    return bytes > 0 && offpath_mem_query(&context, base, bytes, &back_end, &progress) == OFFPATH_OK &&
           back_end == OFFPATH_BACK_END_MAP;
}

// Tells all ranks this rank's part, and returns the worst status of all ranks. Error statuses are negative.
Status agree(offpath_window& window, Status mine, bool mapped) {
    struct Part {
        std::int32_t status = 0;
        std::uint32_t mapped = 0;
    };
    std::vector<Part> parts(window.team->size);
    const Part own{to_c(mine), mapped ? 1U : 0U};
    offpath_request_h request = nullptr;
    const Status status = from_c(offpath_iallgather(window.team, &own, parts.data(), sizeof own, &request));
    const Status over = status == Status::ok ? wait_and_free(*window.context, request) : status;
    if (over != Status::ok) return over;
    for (std::size_t rank = 0; rank < parts.size(); ++rank)
        window.targets[rank].mapped = parts[rank].mapped != 0;
    const auto worst = std::min_element(parts.begin(), parts.end(),
                                        [](const Part& a, const Part& b) { return a.status < b.status; });
    return from_c(static_cast<offpath_status_t>(worst->status));
}

// `arguments` is the result of this rank's argument check. On an error the other ranks still wait for this
// rank, so it takes part.
Status make(offpath_team_h team, void* base, std::size_t bytes, bool dynamic, Status arguments,
            offpath_window_h* window) {
    offpath_context& context = *team->context;
    auto made = std::make_unique<offpath_window>();
    made->context = &context;
    made->team = team;
    made->dynamic = dynamic;
    made->targets.resize(team->size);
    control::CreateWindow command;
    {
        auto guard = context.lock();
        made->id = team->windows++;
        if (bytes > 0 && arguments == Status::ok) command.range = context.resolve(base, bytes);
    }
    command.team = team->id;
    command.window = made->id;
    command.dynamic = dynamic ? 1 : 0;
    const Status mine = arguments == Status::ok ? post_and_wait(context, command) : arguments;
    const bool mapped = mine == Status::ok && is_mapped(context, base, bytes);
    if (const Status status = agree(*made, mine, mapped); status != Status::ok) {
        // The proxy keeps an entry, and the window's memory, even if creation has failed.
        if (arguments == Status::ok) (void)post_and_wait(context, destroy_of(*made));
        return status;
    }
    auto guard = context.lock();
    *window = made.get();
    ++team->open_windows;
    context.windows.emplace(made.get(), std::move(made));
    return Status::ok;
}

// Takes the answer if it has arrived.
void look_for_answer(offpath_window& window, offpath_window::Target& target) {
    client::RequestTable& requests = window.context->requests;
    if (target.question == nullptr || !requests.take(target.question)) return;
    const Status status = target.question->seen();
    if (status == Status::ok) target.flushed = std::max(target.flushed, target.asked);
    if (is_error(status) && window.unreported == Status::ok) window.unreported = status;
    requests.free(std::exchange(target.question, nullptr));
    --window.questions;
}

// A flush of the library's own may have found an error. The program's flush then reports it.
Status with_answers(offpath_window& window, Status status) {
    for (auto target = window.targets.begin(); window.questions > 0 && target != window.targets.end();
         ++target)
        look_for_answer(window, *target);
    return status == Status::ok ? std::exchange(window.unreported, Status::ok) : status;
}

// Whether the own proxy has nothing to do for a flush of the target.
bool own_proxy_is_done(const offpath_window& window, std::uint32_t target) {
    if (target == OFFPATH_ALL_TARGETS) return window.watched == 0 && window.loose == window.flushed;
    return window.targets[target].watched == 0 && !window.loose_outstanding(target);
}

Status outcome_without_proxy(offpath_window& window, bool lost) {
    const Status status = std::exchange(window.unreported, Status::ok);
    return status == Status::ok && lost ? Status::peer_lost : status;
}

bool usable(offpath_team_h team, offpath_window_h* window) {
    return team != nullptr && window != nullptr && !team->destroyed;
}

Status keep_ledger(offpath_window& window, std::uint64_t* words, std::size_t bytes) {
    control::KeepLedger command;
    command.team = window.team->id;
    command.window = window.id;
    {
        auto guard = window.context->lock();
        command.range = window.context->resolve(words, bytes);
    }
    return post_and_wait(*window.context, command);
}

Status flush_and_wait(offpath_window& window, std::uint32_t target) {
    offpath_context& context = *window.context;
    wait_for_direct(window, target);
    offpath_request* request = nullptr;
    // If we ask the proxy nothing, we must check for its loss here.
    const bool lost = context.lost();
    {
        auto guard = context.lock();
        window.batch.flushed();
        if (own_proxy_is_done(window, target)) return outcome_without_proxy(window, lost);
        if (Status status = post_flush(window, target, &request); status != Status::ok) return status;
    }
    const Status status = wait_and_free(context, request);
    auto guard = context.lock();
    return with_answers(window, status);
}

}  // namespace

bool offpath::client::loose_outstanding(offpath_window& window, std::uint32_t rank) {
    if (!window.loose_outstanding(rank)) return false;
    offpath_window::Target& target = window.targets[rank];
    look_for_answer(window, target);
    if (!window.loose_outstanding(rank)) return false;
    offpath_context& context = *window.context;
    if (target.question != nullptr) return true;
    target.question = context.requests.start(&context);
    if (target.question == nullptr) return true;
    control::FlushWindow command;
    command.team = window.team->id;
    command.window = window.id;
    command.target = rank;
    command.completion = target.question->slot;
    if (context.post(command) != Status::ok) {
        context.requests.undo(std::exchange(target.question, nullptr));
        return true;
    }
    context.ring();
    target.asked = target.loose;
    ++window.questions;
    return true;
}

Status offpath::client::post_flush(offpath_window& window, std::uint32_t target, offpath_request** request) {
    control::FlushWindow command;
    command.team = window.team->id;
    command.window = window.id;
    command.target = target;
    const Status status = post_locked(*window.context, command, request);
    if (status != Status::ok) return status;
    offpath_request& made = **request;
    made.earlier = std::exchange(window.unreported, Status::ok);
    made.window = &window;
    made.target = target;
    made.flushes = true;
    made.loose = window.loose;
    made.unwatched = target == OFFPATH_ALL_TARGETS ? window.unwatched : 0;
    return status;
}

void offpath::client::flush_over(offpath_window& window, const offpath_request& request, Status status) {
    give_back_unwatched(window, request.unwatched);
    if (status != Status::ok) return;
    const bool all = request.target == OFFPATH_ALL_TARGETS;
    std::uint64_t& flushed = all ? window.flushed : window.targets[request.target].flushed;
    flushed = std::max(flushed, request.loose);
}

static_assert(OFFPATH_MARK_WORDS * sizeof(std::uint64_t) == rma::Marks::bytes_of_origin &&
              OFFPATH_MARKS_OUTSTANDING == rma::Marks::outstanding);

extern "C" {

offpath_status_t offpath_window_create(offpath_team_h team, void* base, size_t bytes,
                                       offpath_window_h* window) try {
    if (!usable(team, window)) return OFFPATH_ERR_INVALID;
    const bool valid = (base != nullptr || bytes == 0) && bytes <= schedule::max_slot_bytes;
    return to_c(make(team, base, bytes, false, valid ? Status::ok : Status::invalid, window));
} catch (...) {
    return caught("offpath_window_create");
}

offpath_status_t offpath_window_create_dynamic(offpath_team_h team, offpath_window_h* window) try {
    if (!usable(team, window)) return OFFPATH_ERR_INVALID;
    return to_c(make(team, nullptr, 0, true, Status::ok, window));
} catch (...) {
    return caught("offpath_window_create_dynamic");
}

offpath_status_t offpath_window_destroy(offpath_window_h window) try {
    if (window == nullptr) return OFFPATH_ERR_INVALID;
    offpath_context& context = *window->context;
    Status status = flush_and_wait(*window, OFFPATH_ALL_TARGETS);
    const Status met = barrier(window->team);
    if (status == Status::ok) status = met;
    std::unique_ptr<offpath_window> owned;
    {
        // Removed before the proxy forgets it, because other threads flush the windows that they find here.
        auto guard = context.lock();
        owned = std::move(context.windows.extract(window).mapped());
        for (offpath_window::Target& target : owned->targets)
            if (target.question != nullptr) context.requests.free(target.question);
        context.requests.for_each_outstanding([&](offpath_request& request) {
            if (request.window == window) request.window = nullptr;
        });
        give_back_unwatched(*window, window->unwatched);
    }
    const Status ended = post_and_wait(context, destroy_of(*window));
    if (status == Status::ok) status = ended;
    auto guard = context.lock();
    --window->team->open_windows;
    return to_c(status);
} catch (...) {
    return caught("offpath_window_destroy");
}

offpath_status_t offpath_window_attach(offpath_window_h window, void* base, size_t bytes) try {
    if (window == nullptr || !window->dynamic || base == nullptr || bytes == 0 ||
        bytes > schedule::max_slot_bytes)
        return OFFPATH_ERR_INVALID;
    control::AttachWindow command;
    command.team = window->team->id;
    command.window = window->id;
    command.begin = reinterpret_cast<std::uintptr_t>(base);
    {
        auto guard = window->context->lock();
        command.range = window->context->resolve(base, bytes);
    }
    return to_c(post_and_wait(*window->context, command));
} catch (...) {
    return caught("offpath_window_attach");
}

offpath_status_t offpath_window_detach(offpath_window_h window, void* base) try {
    if (window == nullptr || !window->dynamic || base == nullptr) return OFFPATH_ERR_INVALID;
    control::DetachWindow command;
    command.team = window->team->id;
    command.window = window->id;
    command.begin = reinterpret_cast<std::uintptr_t>(base);
    return to_c(post_and_wait(*window->context, command));
} catch (...) {
    return caught("offpath_window_detach");
}

offpath_status_t offpath_window_keep_ledger(offpath_window_h window, std::uint64_t* words) try {
    if (window == nullptr || words == nullptr) return OFFPATH_ERR_INVALID;
    const auto& attachment = window->context->attachment;
    // A network card, or the agent with the device's last requests, may write memory after the device's end.
    if (attachment.exports != nullptr || attachment.agent != nullptr) return OFFPATH_ERR_UNSUPPORTED;
    return to_c(keep_ledger(*window, words, rma::Ledger::bytes(window->team->size)));
} catch (...) {
    return caught("offpath_window_keep_ledger");
}

offpath_status_t offpath_window_keep_marks(offpath_window_h window, std::uint64_t* words) try {
    if (window == nullptr || words == nullptr) return OFFPATH_ERR_INVALID;
    return to_c(keep_ledger(*window, words, rma::Ledger::bytes_with_marks(window->team->size)));
} catch (...) {
    return caught("offpath_window_keep_marks");
}

void offpath_window_mark_next(offpath_window_h window, std::uint32_t mark) {
    window->mark = mark;
}

offpath_mark_state_t offpath_mark_state(const std::uint64_t* marks, std::uint32_t mark,
                                        std::uint64_t* result) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(marks);
    switch (rma::Marks::state(bytes, mark)) {
        case rma::Marks::State::begun:
            return OFFPATH_MARK_BEGUN;
        case rma::Marks::State::applied:
            return rma::Marks::value(bytes, mark, *result) ? OFFPATH_MARK_APPLIED_WITH_RESULT
                                                           : OFFPATH_MARK_APPLIED;
        case rma::Marks::State::unknown:
            break;
    }
    return OFFPATH_MARK_NOT_BEGUN;
}

offpath_status_t offpath_window_flush(offpath_window_h window, uint32_t target,
                                      offpath_request_h* request) try {
    if (window == nullptr || (target >= window->team->size && target != OFFPATH_ALL_TARGETS))
        return OFFPATH_ERR_INVALID;
    if (request == nullptr) return to_c(flush_and_wait(*window, target));
    wait_for_direct(*window, target);
    offpath_context& context = *window->context;
    const bool lost = context.lost();
    auto guard = context.lock();
    window->batch.flushed();
    if (!own_proxy_is_done(*window, target)) return to_c(post_flush(*window, target, request));
    *request = context.requests.finished(&context, outcome_without_proxy(*window, lost));
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_window_flush");
}

offpath_status_t offpath_window_fence(offpath_window_h window, uint32_t target) try {
    if (window == nullptr || (target >= window->team->size && target != OFFPATH_ALL_TARGETS))
        return OFFPATH_ERR_INVALID;
    auto guard = window->context->lock();
    if (window->fenced.empty()) window->fenced.assign(window->team->size, window->fences);
    ++window->fence_calls;
    if (target == OFFPATH_ALL_TARGETS) {
        ++window->fences;
    } else {
        window->fenced[target] = window->fences - 1;
        window->targets[target].watched_fenced = true;
    }
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_window_fence");
}

offpath_status_t offpath_window_lock(offpath_window_h window, uint32_t target, offpath_lock_t lock,
                                     offpath_request_h* request) try {
    if (window == nullptr || target >= window->team->size ||
        (lock != OFFPATH_LOCK_SHARED && lock != OFFPATH_LOCK_EXCLUSIVE))
        return OFFPATH_ERR_INVALID;
    control::WindowOperation command;
    command.team = window->team->id;
    command.window = window->id;
    command.access.target = target;
    command.access.kind = lock_kind(lock);
    offpath_context& context = *window->context;
    // An earlier unlock may still be outstanding on the direct path.
    wait_for_direct(*window, target);
    return to_c(request == nullptr ? post_and_wait(context, command) : post(context, command, request));
} catch (...) {
    return caught("offpath_window_lock");
}

offpath_status_t offpath_window_unlock(offpath_window_h window, uint32_t target) try {
    if (window == nullptr || target >= window->team->size) return OFFPATH_ERR_INVALID;
    control::WindowOperation command;
    command.team = window->team->id;
    command.window = window->id;
    command.access.target = target;
    command.access.kind = rma::OpKind::unlock;
    offpath_context& context = *window->context;
    auto guard = context.lock();
    if (context.direct != nullptr && unlock_directly(*window, target)) return OFFPATH_OK;
    const Status status = context.post(command);
    // A later flush waits for it.
    window->targets[target].loose = ++window->loose;
    context.ring();
    return to_c(status);
} catch (...) {
    return caught("offpath_window_unlock");
}
}
