// Operations that go to the device: on the window of symmetric memory. An operation without a request is
// counted in its context after it was given to the device, so a quiet() that sees the count waits for the
// operation. An error of the device ends the job. Threads: any.
#pragma once

#include "core.h"
#include "device_loss.h"
#include "journal.h"
#include "pending.h"
#include "place.h"
#include "recovery.h"
#include "replay.h"

#include <offpath/offpath.h>

#include <cstring>

namespace offpath::shmem {

[[noreturn]] void fail_device(offpath_status_t status, const char* what);

inline void must(offpath_status_t status, const char* what) {
    if (status != OFFPATH_OK) [[unlikely]]
        fail_device(status, what);
}

inline void finish(offpath_request_h request, const char* what) {
    must(offpath_request_wait(request), what);
    (void)offpath_request_free(request);
}

inline offpath_place_t place_at(const Place& place) {
    return {static_cast<std::uint32_t>(place.pe), place.there(), nullptr, 0};
}

// Another thread may have raised it further already.
inline void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
    std::uint64_t seen = value.load(std::memory_order_relaxed);
    while (seen < to && !value.compare_exchange_weak(seen, to, std::memory_order_acq_rel)) {
    }
}

// Whether the operation has ended well. False: a device was lost, and the job has recovered, with all that
// this PE had started done.
inline bool ended(offpath_status_t status, const char* what) {
    if (status == OFFPATH_OK) [[likely]]
        return true;
    if (!recovered(status)) fail_device(status, what);
    return false;
}

// Tries the short way to the PE's own proxy, for operations that the caller waits for; call() starts the
// operation. UNAVAILABLE: it has to go through this PE's proxy.
template <typename Call>
offpath_status_t directly(const Place& place, std::size_t bytes, Call&& call) {
    if (!place.segment->shared || place.segment->mapped != nullptr || bytes > OFFPATH_DIRECT_BYTES)
        return OFFPATH_ERR_UNAVAILABLE;
    return call();
}

// Waits until everything is done that was started without a request.
void finish_counted();

// Notes the operation at `place` in the journal. Call it right before the operation is started.
inline void note(const Place& place, Unfinished& operation) {
    if (!journal.on()) return;
    if (journal.full()) [[unlikely]]
        finish_counted();
    operation.pe = place.pe;
    operation.address = place.there();
    journal.note(operation);
}
// The operation noted last is done.
inline void drop_note() {
    if (journal.on()) (void)journal.take();
}
// It has been started, and the program may change its data.
inline void keep_noted_bytes() {
    if (journal.on()) journal.keep_bytes();
}

// Counts an operation without a request that was given to the device.
inline void count(Context& context, const Place& place) {
    const std::uint64_t started = context.started.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (place.segment->mapped != nullptr) raise(context.last_near, started);
}

// Gives an operation that no caller waits for to the device; call(request) starts it. If it has a request, a
// quiet of the context waits for this operation alone; there is a limit to such requests. For counted
// operations, a quiet waits for everything that this process has outstanding. `noted`: for the journal.
// `again` says what the processor copies if the only device of the job is lost.
template <typename Call>
void hand_over(Context& context, const Place& place, bool with_request, const char* what, Call&& call,
               Unfinished noted, Pending::Entry again = {}) {
    Pending& pending = place.segment->mapped != nullptr ? context.near : context.far;
    const bool counted = !with_request || !pending.has_room();
    note(place, noted);
    const offpath_status_t status = call(counted ? nullptr : &again.request);
    if (status == OFFPATH_OK) [[likely]] {
        if (counted) return count(context, place);
        if (journal.on()) again.unfinished = journal.take();
        return pending.add(again);
    }
    if (recovered(status)) return;
    if (counted || again.to == nullptr || !goes_on_after(status)) fail_device(status, what);
    std::memcpy(again.to, again.from, again.bytes);
}

}  // namespace offpath::shmem
