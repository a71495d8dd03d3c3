// What a visit does to the memory of a window, and the order of updates.
#include "engine/atomic_update.h"
#include "engine/kernels.h"
#include "engine/onesided.h"

namespace offpath::engine {

using rma::OpKind;

Status apply_update(OpKind kind, schedule::DataType type, std::uint8_t reduction, const std::byte* operands,
                    std::byte* target, std::size_t bytes) {
    if (kind == OpKind::compare_swap) {
        if (std::memcmp(target, operands + bytes, bytes) == 0) std::memcpy(target, operands, bytes);
        return Status::ok;
    }
    if (reduction == rma::no_op) return Status::ok;
    if (reduction == rma::replace) {
        std::memcpy(target, operands, bytes);
        return Status::ok;
    }
    return reduce(type, static_cast<schedule::Reduction>(reduction), operands, target, bytes);
}

namespace {

Status apply(const Visit& visit, const std::byte* operands, std::byte* target, std::size_t bytes) {
    return apply_update(visit.kind, visit.type, visit.reduction, operands, target, bytes);
}

}  // namespace

// The operands are there.
void OneSided::arrived(Visit& visit) {
    if (rma::is_update(visit.kind)) {
        visit.has_arrived = true;
        look_at_lane(*visit.window, visit.origin);
        return run_updates(*visit.window);
    }
    // A put: already in its place, or to be written there.
    if (visit.operands.empty()) return end_visit(visit, Status::ok);
    visit.stage = Visit::Stage::writing;
    if (reach(visit, visit.operands.data(), true)) step(visit);
}

void OneSided::look_at_lane(Window& window, std::uint32_t origin) {
    Window::Lane& lane = window.lanes[origin];
    if (lane.due || lane.updates.empty() || !lane.updates.front()->has_arrived) return;
    lane.due = true;
    window.due.push_back(origin);
}

// Origins take turns, one update each.
void OneSided::run_updates(Window& window) {
    if (window.running_updates) return;
    window.running_updates = true;
    while (!window.updating && !window.due.empty()) {
        const std::uint32_t origin = window.due.front();
        window.due.pop_front();
        Window::Lane& lane = window.lanes[origin];
        lane.due = false;
        if (lane.updates.empty() || !lane.updates.front()->has_arrived) continue;
        Visit& visit = *lane.updates.front();
        lane.updates.pop_front();
        visit.in_lane = false;
        look_at_lane(window, origin);
        if (update_in_place(visit)) continue;
        window.updating = visit.updates = true;
        visit.fetched.resize(visit.bytes);
        visit.stage = Visit::Stage::reading;
        if (reach(visit, visit.fetched.data(), false)) step(visit);
    }
    window.running_updates = false;
}

// False: a segment has no pointer.
bool OneSided::update_in_place(Visit& visit) {
    std::vector<std::byte*> pointers;
    for (std::size_t i = 0; i < visit.segments.size(); ++i) {
        pointers.push_back(place(visit, i).pointer);
        if (pointers.back() == nullptr) return false;
    }
    const bool fetches = rma::result_bytes(visit.kind, visit.bytes) > 0;
    if (fetches) visit.fetched.resize(visit.bytes);
    std::uint64_t at = 0;
    // Host ranks that have the memory mapped may be at it too.
    const bool done = pointers.size() == 1 &&
                      update_atomically(visit.kind, visit.type, visit.reduction, visit.operands.data(),
                                        pointers[0], visit.bytes, fetches ? visit.fetched.data() : nullptr);
    for (std::size_t i = 0; !done && i < pointers.size(); ++i) {
        const std::uint64_t bytes = visit.segments[i].bytes;
        if (fetches) std::memcpy(visit.fetched.data() + at, pointers[i], bytes);
        const Status status = apply(visit, visit.operands.data() + at, pointers[i], bytes);
        if (is_error(status)) {
            end_visit(visit, status);
            return true;
        }
        at += bytes;
    }
    if (fetches) {
        return_fetched(visit);
    } else {
        end_visit(visit, Status::ok);
    }
    return true;
}

// Reads or writes all segments, one after the other in `bytes`. False: the answers come later.
bool OneSided::reach(Visit& visit, std::byte* bytes, bool writes) {
    for (std::size_t i = 0; i < visit.segments.size(); ++i) {
        const std::uint64_t length = visit.segments[i].bytes;
        const Location location = place(visit, i);
        Status status = Status::ok;
        if (location.pointer != nullptr) {
            std::memcpy(writes ? location.pointer : bytes, writes ? bytes : location.pointer, length);
        } else {
            status = writes ? location.write(bytes, length, &visit) : location.read(bytes, length, &visit);
        }
        bytes += length;
        if (status == Status::in_progress) {
            ++visit.accesses;
            ++visit.window->session().pieces;
        } else if (is_error(status)) {
            if (visit.status == Status::ok) visit.status = status;
            break;
        }
    }
    return visit.accesses == 0;
}

// A stage that touched memory has ended.
void OneSided::step(Visit& visit) {
    if (is_error(visit.status) || visit.stage == Visit::Stage::over) return end_visit(visit, visit.status);
    if (visit.stage == Visit::Stage::reading) {
        if (!visit.updates) return return_fetched(visit);
        visit.updated = visit.fetched;
        const Status status = apply(visit, visit.operands.data(), visit.updated.data(), visit.bytes);
        if (is_error(status)) return end_visit(visit, status);
        visit.stage = Visit::Stage::writing;
        if (visit.reduction != rma::no_op && visit.updated != visit.fetched &&
            !reach(visit, visit.updated.data(), true))
            return;
        if (is_error(visit.status)) return end_visit(visit, visit.status);
    }
    if (visit.updates) {
        visit.updates = false;
        visit.window->updating = false;
    }
    Window& window = *visit.window;
    if (rma::result_bytes(visit.kind, visit.bytes) > 0) {
        return_fetched(visit);
    } else {
        visit.fetched.clear();
        end_visit(visit, Status::ok);
    }
    run_updates(window);
}

void OneSided::return_fetched(Visit& visit) {
    if (visit.bytes <= rma::inline_bytes) return end_visit(visit, Status::ok);
    visit.stage = Visit::Stage::returning;
    visit.returned_apart = true;
    Location from;
    from.pointer = visit.fetched.data();
    visit.send =
        engine_.new_send(visit.window->session(), {Owner::Kind::visit, 0, nullptr, nullptr, nullptr, &visit},
                         from, visit.bytes);
    visit.send->peer = &peer_of(visit);
    visit.send->remote_token = visit.receiver;
    engine_.begin(*visit.send);
}

}  // namespace offpath::engine
