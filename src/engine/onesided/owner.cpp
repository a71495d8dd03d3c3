// The owner's half of one-sided operations: messages from origins, locks, and the bytes that come and go.
#include "base/log.h"
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

// One that came in a bundle, or from here.
void OneSided::dispatch(std::span<const std::byte> header, std::span<const std::byte> payload, Peer& from) {
    OneSidedAnswer answer{};
    if (kind_of(header) == Kind::one_sided) return core_.deliver(header, payload, from);
    if (kind_of(header) == Kind::one_sided_answer && read(header, answer))
        return on_answer(answer, payload, from);
    log::warn("a malformed one-sided message was dropped: header of {} bytes", header.size());
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
    log::warn("rank {} asks for window {} of team {:x}, which rank {} does not have", header.route.source,
              header.window, header.route.team, header.route.dest);
    answer(from, header.part, Status::access);
}

// Beyond its message, if there is room; else its origin counts as gone.
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

// The visits that something was held back for are over.
void OneSided::release(Window& window, std::uint32_t origin) {
    Window::Lane& lane = window.lanes[origin];
    // Who sees what comes now, sees what was before.
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

// A small put or get at memory that has a pointer. False: it takes more, or there is something wrong with it;
// nothing was done.
bool OneSided::done_at_once(Window& window, const OneSidedRequest& request) {
    const OneSidedHeader& header = request.header;
    const auto kind = static_cast<OpKind>(header.operation);
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
        // Who sees what comes now, sees what was before.
        if (header.ordered != 0) std::atomic_thread_fence(std::memory_order_release);
        store_at_once(there, request.payload);
        answer(peer, header.part, Status::ok);
    } else {
        answer(peer, header.part, Status::ok, {there, header.bytes});
    }
    return true;
}

void OneSided::accept(Window& window, const OneSidedRequest& request) {
    const OneSidedHeader& header = request.header;
    Peer& peer = *window.team->peers[header.route.source];
    if (window.session().closing || window.team->gone(header.route.source))
        return answer(peer, header.part, Status::peer_lost);
    if (!rma::is_kind(header.operation)) return answer(peer, header.part, Status::protocol);
    if (rma::is_lock(static_cast<OpKind>(header.operation))) return accept_lock(window, header);
    if (done_at_once(window, request)) return;

    Visit* visit = visits_.take();
    visit->function = [](Completion* self, Status status) {
        auto* done = static_cast<Visit*>(self);
        --done->window->session().pieces;
        if (is_error(status) && done->status == Status::ok) done->status = status;
        if (--done->accesses > 0 || done->listed) return;
        done->listed = true;
        done->home->stepped_.push_back(done);
    };
    visit->home = this;
    visit->window = &window;
    visit->origin = header.route.source;
    visit->kind = static_cast<OpKind>(header.operation);
    visit->type = static_cast<schedule::DataType>(header.type);
    visit->reduction = header.reduction;
    visit->bytes = header.bytes;
    visit->part = header.part;
    visit->sender = header.sender;
    visit->receiver = header.receiver;
    window.visits.push_back(*visit);
    ++window.lanes[visit->origin].visits;

    // What the message says of itself has to be true before anything is done.
    std::span<const std::byte> payload = request.payload;
    const std::size_t listed = header.segments > 1 ? header.segments * sizeof(rma::Segment) : 0;
    const std::uint64_t operands = rma::operand_bytes(visit->kind, visit->reduction, visit->bytes);
    const std::uint64_t carried = header.sender == 0 ? operands : 0;
    const bool plain = header.segments == 1 && (visit->kind == OpKind::put || visit->kind == OpKind::get);
    std::uint64_t element = 1;
    if (rma::is_update(visit->kind)) {
        const auto reduction = static_cast<schedule::Reduction>(visit->reduction);
        const bool known = visit->kind == OpKind::compare_swap || visit->reduction >= rma::replace ||
                           schedule::defined(visit->type, reduction);
        element = known ? size_of(visit->type) : 0;
    }
    bool sound = visit->bytes > 0 && header.segments >= 1 && header.segments <= rma::message_segments &&
                 (plain || visit->bytes <= rma::part_bytes) && payload.size() == listed + carried &&
                 element > 0 && visit->bytes % element == 0 && (header.sender == 0 || operands > 0) &&
                 (rma::result_bytes(visit->kind, visit->bytes) > 0) == (header.receiver != 0) &&
                 (visit->kind != OpKind::compare_swap || (visit->bytes == element && header.segments == 1));
    if (sound && listed > 0) {
        visit->segments.resize(header.segments);
        std::memcpy(visit->segments.data(), payload.data(), listed);
        std::uint64_t sum = 0;
        for (const rma::Segment& segment : visit->segments) {
            sound = sound && segment.bytes > 0 && segment.bytes <= visit->bytes - sum &&
                    segment.bytes % element == 0;
            if (sound) sum += segment.bytes;
        }
        sound = sound && sum == visit->bytes;
    } else {
        visit->segments.push_back({header.offset, visit->bytes});
    }
    if (!sound) {
        log::error("rank {} of team {:x} sent a one-sided message that contradicts itself", visit->origin,
                   window.team->id);
        return end_visit(*visit, Status::protocol);
    }
    if (!resolve(*visit)) return end_visit(*visit, Status::access);
    begin_visit(*visit, payload.subspan(listed));
}

void OneSided::accept_lock(Window& window, const OneSidedHeader& header) {
    const std::uint32_t rank = header.route.source;
    const auto kind = static_cast<OpKind>(header.operation);
    const auto& peers = window.team->peers;
    if (kind == OpKind::unlock) {
        std::vector<rma::LockQueue::Asker> granted;
        const bool held = window.lock.unlock(rank, granted);
        answer(*peers[rank], header.part, held ? Status::ok : Status::invalid);
        for (const auto& asker : granted)
            answer(*peers[asker.rank], asker.token, Status::ok);
        return;
    }
    // A rank that is gone may hold it for ever.
    if (window.team->any_gone()) return answer(*peers[rank], header.part, Status::peer_lost);
    switch (window.lock.lock({rank, kind == OpKind::lock_exclusive, header.part})) {
        case rma::LockQueue::Answer::granted:
            return answer(*peers[rank], header.part, Status::ok);
        case rma::LockQueue::Answer::refused:
            return answer(*peers[rank], header.part, Status::invalid);
        case rma::LockQueue::Answer::waits:
            break;
    }
}

// False: a segment leaves the window.
bool OneSided::resolve(Visit& visit) {
    for (const rma::Segment& segment : visit.segments) {
        const std::size_t first = visit.ranges.size();
        if (!visit.window->ranges.cover(segment.offset, segment.bytes, visit.ranges)) {
            log::error(
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
            // Neighbours that were attached one by one, so the offset is an address. No region and no pointer
            // has all of it; the process's own memory does.
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
    // A put or get of one segment moves without a copy here.
    const std::uint64_t operands = rma::operand_bytes(visit.kind, visit.reduction, visit.bytes);
    const std::uint64_t result = rma::result_bytes(visit.kind, visit.bytes);
    const bool single = visit.segments.size() == 1;
    if (visit.sender != 0 && !(single && visit.kind == OpKind::put)) visit.memory += operands;
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
    const std::uint64_t bytes = rma::operand_bytes(visit.kind, visit.reduction, visit.bytes);
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

void Visit::transfer_over(const TransferEnd& end) {
    if (end.sent) {
        send = nullptr;
    } else {
        recv = nullptr;
    }
    home->visit_moved(*this, end.status);
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
    if (visit.admitted) {
        visit_bytes_ -= visit.memory;
    } else if (visit.memory > 0) {
        std::erase(starved_, &visit);
    }
    visits_.give_back(&visit);
    admit();
}

// The visit has done what it came for, or has failed, or what was left of it after that has ended.
void OneSided::end_visit(Visit& visit, Status status) {
    if (is_error(status) && visit.status == Status::ok) visit.status = status;
    if (visit.ending) return;
    Window& window = *visit.window;
    visit.stage = Visit::Stage::over;
    visit.ending = true;
    if (visit.send != nullptr) core_.mover.kill(visit.send);
    if (visit.recv != nullptr) core_.mover.kill(visit.recv);
    visit.ending = false;
    if (visit.in_lane) {
        Window::Lane& lane = window.lanes[visit.origin];
        std::erase(lane.updates, &visit);
        visit.in_lane = false;
        look_at_lane(window, visit.origin);
    }
    leave_turns(visit);
    if (visit.send != nullptr || visit.recv != nullptr || visit.accesses > 0 || visit.listed) return;
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
