// The origin's half of one-sided operations: calls, their messages, and flushes.
#include "base/log.h"
#include "engine/onesided/checks.h"
#include "engine/onesided/onesided.h"

namespace offpath::engine {

using rma::OpKind;

namespace {

// Limits on what may be outstanding at one target: messages, pieces in them, and the memory that they take at
// the target's owner. The owner accepts everything that arrives at once. So the limits must not be many times
// what it does in a round.
constexpr std::uint32_t most_parts = 64;
constexpr std::uint64_t most_pieces = 4096;
constexpr std::uint64_t most_owner_memory = 4 << 20;

// Whether the bytes move straight between the origin's memory and the window's, however many they are.
bool is_plain(const StartedCall& call) {
    const OpKind kind = call.asked.kind;
    return call.rest.contiguous() && (kind == OpKind::put || kind == OpKind::get);
}

bool all_sent(const StartedCall& call) {
    return is_lock(call.asked.kind) ? call.lock_sent : call.rest.over();
}

bool fits(const OneSidedCall& call) {
    if (call.bytes > schedule::max_slot_bytes || call.segments.size() > rma::max_segments) return false;
    const std::uint64_t operands = call.operand_bytes();
    if (call.inlined.empty() ? call.origin.bytes < operands : call.inlined.size() != operands) return false;
    if (call.kind == OpKind::compare_swap && (call.inlined.empty() || call.segments.size() > 1)) return false;
    if (call.inlined.size() > rma::inline_bytes || call.result.bytes < call.result_bytes()) return false;
    if (call.bytes == 0) return call.segments.empty();
    return is_whole(call) && (call.segments.empty() || add_up(call.segments, call));
}

}  // namespace

Status OneSided::start(Window& window, OneSidedCall asked, Completion* done) {
    Team& team = *window.team;
    if (window.ending || asked.target >= team.peers.size() || !fits(asked)) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    if (team.gone(asked.target)) return Status::peer_lost;
    if (asked.bytes == 0 && !is_lock(asked.kind)) return Status::ok;
    if (asked.segments.empty()) asked.segments.push_back({asked.offset, asked.bytes});
    StartedCall* call = calls_.take();
    call->window = &window;
    call->rest = rma::Parts(std::move(asked.segments), asked.bytes);
    call->asked = std::move(asked);
    call->done = done;
    Window::Target& target = window.targets[call->asked.target];
    call->epoch = target.epochs.start();
    window.calls.push_back(*call);
    target.queue.push_back(call);
    ++core_.counters.instances_started;
    pump(window, call->asked.target);
    return Status::in_progress;
}

void OneSided::failed(Window& window, std::uint32_t target, Status status) {
    if (target >= window.targets.size()) target = 0;
    rma::Epochs& epochs = window.targets[target].epochs;
    epochs.end(epochs.start(), status, flushes_over_);
}

void OneSided::pump(Window& window, std::uint32_t rank) {
    // The waiting calls are about to fail. If they were sent now, the target's owner would never be rid of
    // them.
    if (window.session().closing || window.team->gone(rank)) return;
    Window::Target& target = window.targets[rank];
    while (!target.queue.empty() && target.parts < most_parts && target.pieces < most_pieces &&
           target.owner_memory < most_owner_memory) {
        StartedCall& call = *target.queue.front();
        send_part(call);
        if (all_sent(call)) target.queue.pop_front();
    }
}

void OneSided::send_part(StartedCall& call) {
    OneSidedCall& asked = call.asked;
    Window& window = *call.window;
    Team& team = *window.team;
    Window::Target& target = window.targets[asked.target];
    Peer& peer = *team.peers[asked.target];
    const bool plain = is_plain(call);
    rma::Part cut;
    if (is_lock(asked.kind)) {
        call.lock_sent = true;
        cut.segments.push_back({0, 0});
    } else {
        cut = call.rest.next(plain ? UINT64_MAX : rma::part_bytes);
    }
    rma::Access access = asked;
    access.offset = cut.segments[0].offset;
    access.bytes = cut.bytes;
    asked.ordered = 0;                     // only the first part is ordered; the others follow it
    if (!all_sent(call)) access.mark = 0;  // the last part says that all of it is done
    const std::uint64_t operands = access.operand_bytes();
    const std::uint64_t result = access.result_bytes();

    MessagePart* part = parts_.take();
    part->home = this;
    part->call = &call;
    part->pieces = cut.segments.size();
    part->owner_memory = plain ? 0 : std::max(operands, result);
    call.parts.push_back(*part);
    ++target.parts;
    target.pieces += part->pieces;
    target.owner_memory += part->owner_memory;

    OneSidedHeader header{};
    header.kind = Kind::one_sided;
    header.sequence = target.sequence++;
    header.route = team.route_to(asked.target);
    header.window = window.id;
    header.describe(access);
    header.part = part->token;
    header.segments = static_cast<std::uint32_t>(cut.segments.size());

    std::span<const std::byte> segments, inlined;
    if (cut.segments.size() > 1) segments = std::as_bytes(std::span(cut.segments));
    if (!asked.inlined.empty()) {
        inlined = std::span(asked.inlined).subspan(cut.at, operands);
        core_.counters.bytes_sent += operands;
    } else if (operands > 0) {
        part->send =
            core_.mover.new_send(*team.session, *part, 0, team.location(asked.origin).at(cut.at), operands);
        part->send->peer = &peer;
        header.sender = part->send->token;
    }
    if (result > 0) {
        part->recv = core_.mover.new_recv(*team.session, *part, 0, team.location(asked.result).at(cut.at),
                                          result, peer);
        header.receiver = part->recv->token;
    }
    tell(peer, bytes_of(header), segments, inlined);
}

void OneSided::on_answer(const OneSidedAnswer& answer, std::span<const std::byte> payload, Peer& from) {
    MessagePart* part = parts_.find(answer.part);
    if (part == nullptr || part->answered) return;
    if (part->call->window->team->peers[part->call->asked.target] != &from)
        return core_.peers.refuse("an answer to what another proxy was asked", &from);
    const auto status = static_cast<Status>(answer.status);
    if (is_error(status)) return end_part(*part, status);
    part->answered = true;
    if (!payload.empty()) {
        RecvTransfer* recv = part->recv;
        if (recv == nullptr || recv->bytes != payload.size() || recv->moved > 0) {
            log::error(Code::malformed, "an answer brings {} bytes that its question did not ask for",
                       payload.size());
            return end_part(*part, Status::protocol);
        }
        core_.mover.take(*recv, payload);
        // The end of the transfer may have ended the part.
        part = parts_.find(answer.part);
    }
    if (part != nullptr) end_part(*part, Status::ok);
}

void MessagePart::moved(Status status) {
    home->end_part(*this, status);
}

// Called when the answer or a transfer of the part has ended. The part is over when all of them have.
void OneSided::end_part(MessagePart& part, Status status) {
    StartedCall& call = *part.call;
    if (is_error(status)) {
        if (call.status == Status::ok) call.status = status;
        part.answered = part.over = true;
    }
    if (part.over) part.kill(core_.mover);
    if (!part.answered || part.moving()) return;
    Window& window = *call.window;
    const std::uint32_t rank = call.asked.target;
    Window::Target& target = window.targets[rank];
    --target.parts;
    target.pieces -= part.pieces;
    target.owner_memory -= part.owner_memory;
    call.parts.remove(part);
    parts_.give_back(&part);
    if (is_error(call.status)) std::erase(target.queue, &call);
    if (call.parts.empty() && (is_error(call.status) || all_sent(call))) end_call(call);
    pump(window, rank);
}

void OneSided::end_call(StartedCall& call) {
    if (call.over) return;
    call.over = true;
    call.window->targets[call.asked.target].epochs.end(
        call.epoch, call.asked.watched ? Status::ok : call.status, flushes_over_);
    calls_over_.push_back(&call);
}

void OneSided::fail_call(StartedCall& call, Status status) {
    if (call.over) return;
    if (call.status == Status::ok) call.status = status;
    std::erase(call.window->targets[call.asked.target].queue, &call);
    for (MessagePart* part : call.parts.all())
        end_part(*part, status);
    if (call.parts.empty()) end_call(call);
}

Status OneSided::flush(Window& window, std::uint32_t rank, Completion* done) {
    if (rank != every_target && rank >= window.targets.size()) return Status::invalid;
    FlushOf* flush = flushes_.take();
    flush->done = done;
    if (rank == every_target) {
        for (Window::Target& target : window.targets)
            target.epochs.flush(*flush);
    } else {
        window.targets[rank].epochs.flush(*flush);
    }
    if (flush->left > 0) return Status::in_progress;
    const Status status = flush->status;
    flushes_.give_back(flush);
    return status;
}

bool OneSided::advance() {
    bool moved = false;
    for (std::size_t n = local_.size(); n > 0; --n, moved = true) {
        const Local message = std::move(local_.front());
        local_.pop_front();
        dispatch(message.header, message.payload, core_.peers.me());
    }
    std::vector<Visit*> stepped;
    stepped.swap(stepped_);
    for (Visit* visit : stepped) {
        visit->listed = false;
        step(*visit);
        moved = true;
    }
    std::vector<Released> released;
    released.swap(released_);
    for (const Released& lane : released) {
        release(*lane.window, lane.origin);
        moved = true;
    }
    std::vector<StartedCall*> over;
    over.swap(calls_over_);
    for (StartedCall* call : over) {
        Window& window = *call->window;
        Completion* done = call->done;
        const Status status = call->status;
        window.calls.remove(*call);
        calls_.give_back(call);
        (is_error(status) ? core_.counters.instances_failed : core_.counters.instances_done)++;
        if (done != nullptr) (*done)(status);
        if (window.ending) unsettled_.push_back(&window);
        moved = true;
    }
    std::vector<rma::Flush*> flushes;
    flushes.swap(flushes_over_);
    for (rma::Flush* base : flushes) {
        auto* flush = static_cast<FlushOf*>(base);
        Completion* done = flush->done;
        const Status status = flush->status;
        flushes_.give_back(flush);
        if (done != nullptr) (*done)(status);
        moved = true;
    }
    while (!unsettled_.empty()) {
        Window* window = unsettled_.back();
        std::erase(unsettled_, window);
        settle(*window);
        moved = true;
    }
    return moved;
}

}  // namespace offpath::engine
