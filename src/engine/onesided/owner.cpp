// The owner's half of one-sided operations: messages from origins, locks, and the bytes that come and go.
#include "base/log.h"
#include "engine/onesided/checks.h"
#include "engine/onesided/onesided.h"
#include "engine/reductions/atomic_update.h"

#include <atomic>

namespace offpath::engine {

using rma::OpKind;

void OneSided::answer(Peer& peer, std::uint64_t part, Status status, std::span<const std::byte> payload) {
    const OneSidedAnswer header{Kind::one_sided_answer, static_cast<std::int32_t>(status), part};
    core_.counters.bytes_sent += payload.size();
    tell(peer, bytes_of(header), payload);
}

// Handles a message that came in a bundle or from this engine itself.
void OneSided::dispatch(std::span<const std::byte> header, std::span<const std::byte> payload, Peer& from) {
    OneSidedAnswer answer{};
    if (kind_of(header) == Kind::one_sided) return core_.deliver(header, payload, from);
    if (kind_of(header) == Kind::one_sided_answer && read(header, answer))
        return on_answer(answer, payload, from);
    log::warn(Code::malformed, "a malformed one-sided message was dropped: header of {} bytes",
              header.size());
}

bool OneSided::on_message(Team& /*team*/, std::span<const std::byte> header,
                          std::span<const std::byte> payload, Peer& from) {
    OneSidedHeader request{};
    if (!read(header, request)) return false;
    on_request(request, payload, from);
    return true;
}

void OneSided::on_request(const OneSidedHeader& header, std::span<const std::byte> payload, Peer& from) {
    Window* window = find(header.route, header.window, true);
    if (window != nullptr) {
        auto& gate = window->lanes[header.route.source].gate;
        OneSidedRequest request{header, payload, {}};
        const bool early = !gate.is_next(header.sequence);
        if (early && !keep(*window, request)) return;
        const bool fresh = gate.arrive(header.sequence, std::move(request),
                                       [&](OneSidedRequest due) { take_turn(*window, std::move(due)); });
        if (early && !fresh) let_go(*window, payload.size());
        return;
    }
    log::warn(Code::window, "rank {} asks for window {} of team {:x}, which rank {} does not have",
              header.route.source, header.window, header.route.team, header.route.dest);
    answer(from, header.part, Status::access);
}

// Keeps the request beyond its message if there is room. Otherwise its origin counts as gone.
bool OneSided::keep(Window& window, OneSidedRequest& request) {
    if (request.counted) return true;
    Team& team = *window.team;
    if (!core_.take_room(*team.session->its_job, &team, request.payload.size())) {
        core_.too_far_ahead(team, request.header.route.source);
        return false;
    }
    window.early_bytes += Core::room(request.payload.size());
    request.counted = true;
    request.keep();
    return true;
}

void OneSided::let_go(Window& window, std::size_t payload_bytes) {
    window.early_bytes -= Core::room(payload_bytes);
    core_.give_room_back(*window.team->session->its_job, window.team, payload_bytes);
}

void OneSided::take_turn(Window& window, OneSidedRequest request) {
    Window::Lane& lane = window.lanes[request.header.route.source];
    if (lane.held.empty() && (request.header.ordered == 0 || lane.visits == 0)) {
        if (request.counted) let_go(window, request.payload.size());
        return accept(window, request);
    }
    if (!keep(window, request)) return;
    lane.held.push_back(std::move(request));
    ++window.held;
}

// Called when the visits that messages were held back for are over.
void OneSided::release(Window& window, std::uint32_t origin) {
    Window::Lane& lane = window.lanes[origin];
    // A reader that sees the accesses from here on also sees what was written before.
    std::atomic_thread_fence(std::memory_order_release);
    while (!lane.held.empty() && (lane.held.front().header.ordered == 0 || lane.visits == 0)) {
        const OneSidedRequest request = std::move(lane.held.front());
        lane.held.pop_front();
        --window.held;
        let_go(window, request.payload.size());
        accept(window, request);
    }
    if (window.ending) unsettled_.push_back(&window);
}

// Executes a small put or get of memory that has a pointer. False: the request needs more than that or is
// wrong, and nothing was done.
bool OneSided::done_at_once(Window& window, const OneSidedRequest& request) {
    const OneSidedHeader& header = request.header;
    const OpKind kind = header.operation;
    const bool put = kind == OpKind::put && header.sender == 0 && header.receiver == 0 &&
                     request.payload.size() == header.bytes;
    const bool get = kind == OpKind::get && header.sender == 0 && header.receiver != 0 &&
                     request.payload.empty() && header.bytes <= rma::inline_bytes;
    if ((!put && !get) || header.segments != 1 || header.bytes == 0) return false;
    const rma::Ranges::Range* range = window.ranges.find(header.offset, header.bytes);
    if (range == nullptr) return false;
    std::byte* const there = window.session().memory->direct({range->region, range->address, range->bytes},
                                                             header.offset - range->begin, header.bytes);
    if (there == nullptr) return false;
    Peer& peer = *window.team->peers[header.route.source];
    if (put) {
        core_.counters.bytes_received += header.bytes;
        // A reader that sees the accesses from here on also sees what was written before.
        if (header.ordered != 0) std::atomic_thread_fence(std::memory_order_release);
        window.ledger.marks.begin(header.route.source, header.mark);
        store_at_once(there, request.payload);
        window.ledger.marks.end(header.route.source, header.mark);
        answer(peer, header.part, Status::ok);
    } else {
        answer(peer, header.part, Status::ok, {there, header.bytes});
    }
    return true;
}

void OneSided::accept(Window& window, const OneSidedRequest& request) {
    const OneSidedHeader& header = request.header;
    Peer& peer = *window.team->peers[header.route.source];
    if (window.session().closing || window.retired || window.team->gone(header.route.source))
        return answer(peer, header.part, Status::peer_lost);
    if (!rma::is_kind(header.operation)) return answer(peer, header.part, Status::protocol);
    if (rma::is_lock(header.operation)) return accept_lock(window, header);
    if (done_at_once(window, request)) return;

    Visit* visit = visits_.take();
    visit->function = [](Completion* self, Status status) {
        auto* done = static_cast<Visit*>(self);
        --done->window->session().pieces;
        done->unreached |= is_error(status);
        if (is_error(status) && done->status == Status::ok) done->status = status;
        if (--done->accesses > 0 || done->listed) return;
        done->listed = true;
        done->home->stepped_.push_back(done);
    };
    static_cast<rma::Access&>(*visit) = header.access();
    visit->home = this;
    visit->window = &window;
    visit->origin = header.route.source;
    visit->part = header.part;
    visit->sender = header.sender;
    visit->receiver = header.receiver;
    window.visits.push_back(*visit);
    ++window.lanes[visit->origin].visits;

    // The message must be consistent before anything is done.
    std::span<const std::byte> payload = request.payload;
    const std::size_t listed = header.segments > 1 ? header.segments * sizeof(rma::Segment) : 0;
    const std::uint64_t operands = visit->operand_bytes();
    const std::uint64_t carried = header.sender == 0 ? operands : 0;
    const bool single = header.segments == 1;
    const bool plain = single && (visit->kind == OpKind::put || visit->kind == OpKind::get);
    bool sound = is_whole(*visit) && header.segments >= 1 && header.segments <= rma::message_segments &&
                 (plain || visit->bytes <= rma::part_bytes) && payload.size() == listed + carried &&
                 (header.sender == 0 || operands > 0) &&
                 (visit->result_bytes() > 0) == (header.receiver != 0) &&
                 (visit->kind != OpKind::compare_swap || single);
    if (sound && !single) {
        visit->segments.resize(header.segments);
        std::memcpy(visit->segments.data(), payload.data(), listed);
        sound = add_up(visit->segments, *visit);
    } else {
        visit->segments.push_back({visit->offset, visit->bytes});
    }
    if (!sound) {
        log::error(Code::malformed, "rank {} of team {:x} sent a one-sided message that contradicts itself",
                   visit->origin, window.team->id);
        return end_visit(*visit, Status::protocol);
    }
    if (!resolve(*visit)) return end_visit(*visit, Status::access);
    begin_visit(*visit, payload.subspan(listed));
}

void OneSided::accept_lock(Window& window, const OneSidedHeader& header) {
    const std::uint32_t rank = header.route.source;
    const auto& peers = window.team->peers;
    if (header.operation == OpKind::unlock) {
        std::vector<rma::LockQueue::Asker> granted;
        const bool held = window.lock.unlock(rank, granted);
        answer(*peers[rank], header.part, held ? Status::ok : Status::invalid);
        for (const auto& asker : granted)
            answer(*peers[asker.rank], asker.token, Status::ok);
        return;
    }
    // A rank that is gone may hold the lock forever.
    if (window.team->any_gone()) return answer(*peers[rank], header.part, Status::peer_lost);
    switch (window.lock.lock({rank, header.operation == OpKind::lock_exclusive, header.part})) {
        case rma::LockQueue::Answer::granted:
            return answer(*peers[rank], header.part, Status::ok);
        case rma::LockQueue::Answer::refused:
            return answer(*peers[rank], header.part, Status::invalid);
        case rma::LockQueue::Answer::waits:
            break;
    }
}

// False: a segment reaches outside the window.
bool OneSided::resolve(Visit& visit) {
    for (const rma::Segment& segment : visit.segments) {
        const std::size_t first = visit.ranges.size();
        if (!visit.window->ranges.cover(segment.offset, segment.bytes, visit.ranges)) {
            log::error(
                Code::window,
                "rank {} of team {:x} reaches for {} bytes at {:#x} of window {} at rank {}, outside it",
                visit.origin, visit.window->team->id, segment.bytes, segment.offset, visit.window->id,
                visit.window->team->rank);
            visit.ranges.resize(first);
            return false;
        }
        for (std::size_t i = first; i < visit.ranges.size(); ++i)
            ++visit.ranges[i]->users;
        const rma::Ranges::Range& range = *visit.ranges[first];
        if (visit.ranges.size() == first + 1) {
            visit.places.push_back(
                {range.region, range.address + (segment.offset - range.begin), segment.bytes});
        } else {
            // The segment spans ranges that were attached one by one, so the offset is an address. No region
            // and no pointer covers all of it, but the address space of the process does.
            visit.places.push_back({0, segment.offset, segment.bytes});
        }
    }
    return true;
}

Location OneSided::place(const Visit& visit, std::size_t i) const {
    return visit.window->team->location(visit.places[i]);
}

void OneSided::begin_visit(Visit& visit, std::span<const std::byte> carried) {
    if (rma::is_update(visit.kind)) {
        Window::Lane& lane = visit.window->lanes[visit.origin];
        lane.updates.push_back(&visit);
        visit.in_lane = true;
    }
    visit.operands.assign(carried.begin(), carried.end());
    core_.counters.bytes_received += carried.size();
    // A put or get of one segment moves without a copy in this proxy.
    const std::uint64_t result = visit.result_bytes();
    const bool single = visit.segments.size() == 1;
    if (visit.sender != 0 && !(single && visit.kind == OpKind::put)) visit.memory += visit.operand_bytes();
    if (result > rma::inline_bytes && !(single && visit.kind == OpKind::get)) visit.memory += result;
    if (visit.memory == 0) return proceed(visit);
    starved_.push_back(&visit);
    admit();
}

void OneSided::admit() {
    if (admitting_) return;
    admitting_ = true;
    while (!starved_.empty()) {
        Visit& visit = *starved_.front();
        if (visit_bytes_ > 0 && visit_bytes_ + visit.memory > core_.config.visit_bytes) break;
        starved_.pop_front();
        visit.admitted = true;
        visit_bytes_ += visit.memory;
        core_.counters.most_visit_bytes = std::max(core_.counters.most_visit_bytes, visit_bytes_);
        proceed(visit);
    }
    admitting_ = false;
}

void OneSided::proceed(Visit& visit) {
    if (visit.sender != 0) return receive_operands(visit);
    if (visit.kind != OpKind::get) return arrived(visit);
    if (visit.segments.size() > 1 || visit.bytes <= rma::inline_bytes) return touch(visit);
    visit.stage = Visit::Stage::returning;
    visit.send = core_.mover.new_send(visit.window->session(), visit, 0, place(visit, 0), visit.bytes);
    visit.send->peer = &peer_of(visit);
    visit.send->remote_token = visit.receiver;
    core_.mover.begin(*visit.send);
}

void OneSided::receive_operands(Visit& visit) {
    const std::uint64_t bytes = visit.operand_bytes();
    Location to;
    if (visit.kind == OpKind::put && visit.segments.size() == 1) {
        to = place(visit, 0);
    } else {
        visit.operands.resize(bytes);
        to.pointer = visit.operands.data();
    }
    visit.recv = core_.mover.new_recv(visit.window->session(), visit, 0, to, bytes, peer_of(visit));
    core_.mover.grant(peer_of(visit), visit.sender, *visit.recv);
}

void Visit::moved(Status moved_with) {
    home->visit_moved(*this, moved_with);
}

void OneSided::visit_moved(Visit& visit, Status status) {
    if (is_error(status) || visit.stage != Visit::Stage::arriving) return end_visit(visit, status);
    arrived(visit);
}

void OneSided::give_back(Visit& visit) {
    Window& window = *visit.window;
    for (rma::Ranges::Range* range : visit.ranges) {
        --range->users;
        if (range->leaving) unsettled_.push_back(&window);
    }
    window.visits.remove(visit);
    Window::Lane& lane = window.lanes[visit.origin];
    if (--lane.visits == 0 && !lane.held.empty()) released_.push_back({&window, visit.origin});
    if (window.ending) unsettled_.push_back(&window);
    close_if_retired(window);
    if (visit.admitted) {
        visit_bytes_ -= visit.memory;
    } else if (visit.memory > 0) {
        std::erase(starved_, &visit);
    }
    visits_.give_back(&visit);
    admit();
}

// Called when the visit has done its work or has failed, and again when what was still in progress then has
// ended.
void OneSided::end_visit(Visit& visit, Status status) {
    if (is_error(status) && visit.status == Status::ok) visit.status = status;
    Window& window = *visit.window;
    visit.stage = Visit::Stage::over;
    visit.kill(core_.mover);
    if (visit.in_lane) {
        Window::Lane& lane = window.lanes[visit.origin];
        std::erase(lane.updates, &visit);
        visit.in_lane = false;
        look_at_lane(window, visit.origin);
    }
    leave_turns(visit);
    if (visit.moving() || visit.accesses > 0 || visit.listed) return;
    // It may have been given up during its write, which has ended well since.
    if (visit.in_ledger && !visit.unreached) note_end(visit);
    if (visit.noted) window.remote_ledger->take_back(visit.origin, visit.bytes);
    if (visit.kind == OpKind::put && visit.status == Status::ok)
        window.ledger.marks.end(visit.origin, visit.mark);
    visit.in_ledger = visit.noted = false;
    if (visit.updates) {
        visit.updates = false;
        window.updating = false;
    }
    const bool brings = visit.status == Status::ok && !visit.returned_apart && !visit.fetched.empty();
    answer(peer_of(visit), visit.part, visit.status,
           brings ? std::span<const std::byte>(visit.fetched) : std::span<const std::byte>());
    give_back(visit);
    run_updates(window);
}

}  // namespace offpath::engine
