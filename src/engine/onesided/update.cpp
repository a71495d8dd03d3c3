// What a visit does to the memory of a window, and the order of updates.
#include "engine/onesided/checks.h"
#include "engine/onesided/onesided.h"
#include "engine/reductions/atomic_update.h"
#include "engine/reductions/reduce.h"

namespace offpath::engine {

using rma::OpKind;

Status apply_update(const rma::Access& access, const std::byte* operands, std::byte* target,
                    std::size_t bytes) {
    if (access.kind == OpKind::compare_swap) {
        if (std::memcmp(target, operands + bytes, bytes) == 0) std::memcpy(target, operands, bytes);
        return Status::ok;
    }
    if (access.reduction == rma::no_op) return Status::ok;
    if (access.reduction == rma::replace) {
        std::memcpy(target, operands, bytes);
        return Status::ok;
    }
    return reduce(type_of(access), static_cast<schedule::Reduction>(access.reduction), operands, target,
                  bytes);
}

// Called when the operands of the visit are here.
void OneSided::arrived(Visit& visit) {
    if (rma::is_update(visit.kind)) {
        visit.has_arrived = true;
        look_at_lane(*visit.window, visit.origin);
        return run_updates(*visit.window);
    }
    // The operands of a put are in their place already, or must be written there.
    if (visit.operands.empty()) return end_visit(visit, Status::ok);
    touch(visit);
}

// Begins a get, or a put whose operands are here.
void OneSided::begin_access(Visit& visit) {
    const bool writes = visit.kind == OpKind::put;
    visit.stage = writes ? Visit::Stage::writing : Visit::Stage::reading;
    if (!writes) visit.fetched.resize(visit.bytes);
    if (reach(visit, writes ? visit.operands.data() : visit.fetched.data(), writes)) step(visit);
}

void OneSided::look_at_lane(Window& window, std::uint32_t origin) {
    Window::Lane& lane = window.lanes[origin];
    if (lane.due || lane.updates.empty() || !lane.updates.front()->has_arrived) return;
    lane.due = true;
    window.due.push_back(origin);
}

// Returns the first update of the origin whose turn it is, or null if none is due.
Visit* OneSided::next_update(Window& window) {
    for (; !window.due.empty(); window.due.pop_front()) {
        Window::Lane& lane = window.lanes[window.due.front()];
        if (!lane.updates.empty() && lane.updates.front()->has_arrived) return lane.updates.front();
        lane.due = false;
    }
    return nullptr;
}

// Origins take turns, one update each.
void OneSided::run_updates(Window& window, bool its_turn) {
    if (window.running_updates) return;
    window.running_updates = true;
    while (!window.updating) {
        Visit* const next = next_update(window);
        if (next == nullptr) break;
        Visit& visit = *next;
        if (!its_turn && !may_begin(visit)) {
            wait_for_turn(window);
            break;
        }
        if (!visit.small()) its_turn = false;
        Window::Lane& lane = window.lanes[visit.origin];
        window.due.pop_front();
        lane.due = false;
        lane.updates.pop_front();
        visit.in_lane = false;
        look_at_lane(window, visit.origin);
        if (update_in_place(visit)) continue;
        window.updating = visit.updates = true;
        visit.fetched.resize(visit.bytes);
        visit.stage = Visit::Stage::reading;
        // The word of a small one travels while its memory is read. A long one is in doubt for less time if
        // it waits for the word apart.
        if (window.remote_ledger && visit.small()) (void)note_begin(visit);
        if (reach(visit, visit.fetched.data(), false) && visit.accesses == 0) step(visit);
    }
    window.running_updates = false;
}

// False: a segment has no pointer, and nothing was done.
bool OneSided::update_in_place(Visit& visit) {
    if (visit.window->remote_ledger) return false;
    std::vector<std::byte*> pointers;
    for (std::size_t i = 0; i < visit.segments.size(); ++i) {
        pointers.push_back(place(visit, i).pointer);
        if (pointers.back() == nullptr) return false;
    }
    account(visit);
    const bool fetches = visit.result_bytes() > 0;
    if (fetches) visit.fetched.resize(visit.bytes);
    std::uint64_t at = 0;
    rma::Ledger& ledger = visit.window->ledger;
    ledger.begin(visit.origin, visit.bytes, visit.mark);
    // Host ranks that have the memory mapped may access it at the same time.
    const bool done = pointers.size() == 1 && update_atomically(visit, visit.operands.data(), pointers[0],
                                                                fetches ? visit.fetched.data() : nullptr);
    for (std::size_t i = 0; !done && i < pointers.size(); ++i) {
        const std::uint64_t bytes = visit.segments[i].bytes;
        if (fetches) std::memcpy(visit.fetched.data() + at, pointers[i], bytes);
        const Status status = apply_update(visit, visit.operands.data() + at, pointers[i], bytes);
        if (is_error(status)) {
            end_visit(visit, status);
            return true;
        }
        at += bytes;
    }
    ledger.marks.fetched(visit.origin, visit.mark, visit.fetched);
    ledger.end(visit.origin, visit.bytes, visit.mark);
    if (fetches) {
        return_fetched(visit);
    } else {
        end_visit(visit, Status::ok);
    }
    return true;
}

// The ledger must call the update begun before any byte of it is written. False: step() goes on once it does.
bool OneSided::note_begin(Visit& visit) {
    Window& window = *visit.window;
    if (!window.remote_ledger) {
        window.ledger.begin(visit.origin, visit.bytes, visit.mark);
        return true;
    }
    if (visit.noted) return true;
    const Status status = window.remote_ledger->begin(visit.origin, visit.bytes, visit);
    visit.unreached |= is_error(status);
    if (is_error(status) && visit.status == Status::ok) visit.status = status;
    if (status != Status::in_progress) return true;
    ++visit.accesses;
    ++window.session().pieces;
    visit.noted = true;
    return false;
}

void OneSided::note_end(Visit& visit) {
    Window& window = *visit.window;
    if (window.remote_ledger) {
        window.remote_ledger->end(visit.origin, visit.bytes);
    } else {
        window.ledger.end(visit.origin, visit.bytes, visit.mark);
    }
}

// Reads or writes all segments. `bytes` holds them one after the other. False: the answers come later.
bool OneSided::reach(Visit& visit, std::byte* bytes, bool writes) {
    account(visit);
    pieces_.clear();
    for (std::size_t i = 0; i < visit.segments.size(); ++i) {
        const std::uint64_t length = visit.segments[i].bytes;
        std::byte* const pointer = place(visit, i).pointer;
        if (pointer == nullptr) {
            pieces_.push_back({visit.places[i], bytes});
        } else {
            std::memcpy(writes ? pointer : bytes, writes ? bytes : pointer, length);
        }
        bytes += length;
    }
    if (pieces_.empty()) return true;
    Session& session = visit.window->session();
    std::uint32_t later = 0;
    const Status status = session.memory->copy_pieces(writes, pieces_, &visit, later);
    visit.accesses += later;
    session.pieces += later;
    visit.unreached |= is_error(status);
    if (is_error(status) && visit.status == Status::ok) visit.status = status;
    return visit.accesses == 0;
}

// Called when a stage that touched memory has ended.
void OneSided::step(Visit& visit) {
    if (is_error(visit.status) || visit.stage == Visit::Stage::over) return end_visit(visit, visit.status);
    if (visit.stage == Visit::Stage::reading) {
        if (!visit.updates) return return_fetched(visit);
        visit.updated = visit.fetched;
        const Status status = apply_update(visit, visit.operands.data(), visit.updated.data(), visit.bytes);
        if (is_error(status)) return end_visit(visit, status);
        visit.stage = Visit::Stage::noting;
        if (!note_begin(visit)) return;
        if (is_error(visit.status)) return end_visit(visit, visit.status);
    }
    if (visit.stage == Visit::Stage::noting) {
        visit.stage = Visit::Stage::writing;
        visit.noted = false;
        visit.in_ledger = true;
        if (visit.reduction != rma::no_op && visit.updated != visit.fetched &&
            !reach(visit, visit.updated.data(), true))
            return;
        if (is_error(visit.status)) return end_visit(visit, visit.status);
    }
    if (visit.updates) {
        if (visit.result_bytes() > 0)
            visit.window->ledger.marks.fetched(visit.origin, visit.mark, visit.fetched);
        note_end(visit);
        visit.in_ledger = visit.updates = false;
        visit.window->updating = false;
    }
    Window& window = *visit.window;
    if (visit.result_bytes() > 0) {
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
    visit.send = core_.mover.new_send(visit.window->session(), visit, 0, from, visit.bytes);
    visit.send->peer = &peer_of(visit);
    visit.send->remote_token = visit.receiver;
    core_.mover.begin(*visit.send);
}

}  // namespace offpath::engine
