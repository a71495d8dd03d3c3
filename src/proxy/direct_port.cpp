#include "proxy/direct_port.h"

#include "base/log.h"
#include "proxy/traced.h"
#include "transport/encrypted/format.h"
#include "transport/tcp/address.h"

#include <algorithm>

namespace offpath::proxy {

namespace direct = rma::direct;

DirectPort::DirectPort(std::unique_ptr<transport::Transport> transport, engine::Engine& engine)
    : transport_(std::move(transport)), engine_(engine) {
    transport_->set_handler(this);
}

DirectPort::~DirectPort() {
    transport_->set_handler(nullptr);
    for (auto& [job, secrets] : ranks_)
        for (auto& [rank, secret] : secrets)
            control::wipe(secret);
}

control::Secret DirectPort::admit(const engine::JobId& job, std::uint32_t rank) {
    return ranks_[{job.high, job.low}][rank] = control::draw_secret();
}

void DirectPort::forget(const engine::JobId& job, std::uint32_t rank) {
    const auto found = ranks_.find({job.high, job.low});
    if (found == ranks_.end()) return;
    if (const auto secret = found->second.find(rank); secret != found->second.end()) {
        control::wipe(secret->second);
        found->second.erase(secret);
    }
    if (!found->second.empty()) return;
    ranks_.erase(found);
    for (auto caller = callers_.begin(); caller != callers_.end();) {
        const auto next = std::next(caller);
        if (caller->token != 0 && caller->job == job) drop(caller);
        caller = next;
    }
}

unsigned DirectPort::progress() {
    const unsigned events = transport_->progress();
    for (const std::uint64_t token : held_) {
        const auto found = by_token_.find(token);
        if (found == by_token_.end()) continue;
        found->second->held = false;
        transport_->let_go(*found->second->endpoint);
    }
    held_.clear();
    return events;
}

void DirectPort::hold(Caller& caller) {
    if (caller.held) return;
    caller.held = true;
    held_.push_back(caller.token);
    transport_->hold(*caller.endpoint);
}

void DirectPort::on_message(const transport::Incoming& message) {
    // No caller has a reason to send that much.
    if (message.rendezvous != nullptr) return transport_->discard(message.rendezvous);
    const std::span payload(message.data, message.bytes);
    direct::Request request;
    direct::Bundle bundle;
    direct::Handshake handshake;
    if (read(message.header, direct::Kind::request, request)) return on_request(request, payload);
    if (read(message.header, direct::Kind::requests, bundle)) return on_requests(bundle, payload);
    if (read(message.header, direct::Kind::handshake, handshake))
        return on_handshake(handshake.path, payload);
    log::debug("something that is no request was dropped: header of {} bytes", message.header.size());
}

void DirectPort::on_handshake(std::uint32_t path, std::span<const std::byte> payload) {
    control::Message message;
    std::string problem;
    if (control::decode_message(payload, message, problem) != Status::ok) {
        log::warn(Code::malformed, "a caller was not understood: {}", problem);
    } else if (const auto* call = std::get_if<control::DirectCall>(&message)) {
        on_call(path, *call);
    } else if (const auto* proof = std::get_if<control::DirectProof>(&message)) {
        on_proof(*proof);
    }
}

void DirectPort::on_call(std::uint32_t path, const control::DirectCall& call) {
    // Answer only over the connection that the caller has made.
    std::span<const std::byte> plain = call.address;
    transport::encrypted::Address encrypted;
    transport::tcp::Address address;
    std::string problem;
    if (transport::encrypted::is_address(plain) &&
        transport::encrypted::decode(plain, encrypted, problem) == Status::ok)
        plain = encrypted.below;
    if (transport::tcp::decode(plain, address, problem) != Status::ok || address.port != 0) {
        log::warn(Code::malformed, "a caller named no address that he could have: {}", problem);
        return;
    }
    if (callers_.size() - unproved_ >= max_callers) return;
    if (unproved_ >= max_unproved) drop(callers_.begin());
    Caller caller;
    caller.path = path;
    if (transport_->connect(call.address, &caller.endpoint) != Status::ok) return;
    caller.challenge = control::draw_nonce();
    const auto place = std::next(callers_.begin(), static_cast<std::ptrdiff_t>(unproved_));
    const auto made = callers_.insert(place, caller);
    ++unproved_;
    say(*made, control::Challenge{made->challenge});
}

void DirectPort::on_proof(const control::DirectProof& proof) {
    const auto end = std::next(callers_.begin(), static_cast<std::ptrdiff_t>(unproved_));
    const auto caller = std::find_if(callers_.begin(), end,
                                     [&](const Caller& each) { return each.challenge == proof.challenge; });
    if (caller == end) return;
    const auto job = ranks_.find({proof.job_high, proof.job_low});
    const control::Secret* secret = nullptr;
    if (job != ranks_.end()) {
        const auto rank = job->second.find(proof.target);
        if (rank != job->second.end()) secret = &rank->second;
    }
    if (secret == nullptr ||
        !control::same(proof.mac, control::handshake_mac(*secret, proof.challenge, proof.nonce, proof))) {
        log::error(Code::refused,
                   "a caller was refused: he does not know the secret of rank {} of job {:08x}", proof.target,
                   static_cast<std::uint32_t>(proof.job_high));
        return drop(caller);
    }
    callers_.splice(callers_.end(), callers_, caller);
    --unproved_;
    caller->job = {proof.job_high, proof.job_low};
    caller->rank = proof.rank;
    caller->token = control::draw_token();
    by_token_[caller->token] = caller;
    control::DirectWelcome welcome{caller->token, {}};
    welcome.mac = control::handshake_mac(*secret, proof.challenge, proof.nonce, welcome);
    say(*caller, welcome);
}

DirectPort::Caller* DirectPort::caller_of(std::uint64_t token) {
    const auto found = by_token_.find(token);
    if (found == by_token_.end()) return nullptr;
    Caller& caller = *found->second;
    if (transport_->unsent(*caller.endpoint) <= max_unsent) return &caller;
    log::error(Code::network_end, "a rank of job {:08x} does not read its answers: it is cut off",
               static_cast<std::uint32_t>(caller.job.high));
    drop(found->second);
    return nullptr;
}

void DirectPort::on_request(const direct::Request& request, std::span<const std::byte> operands) {
    Caller* const caller = caller_of(request.token);
    if (caller == nullptr) return;
    hold(*caller);
    std::span<const std::byte> result;
    const Status status = perform(*caller, request, operands, result);
    answer(*caller, request.number, status, result);
}

void DirectPort::on_requests(const direct::Bundle& bundle, std::span<const std::byte> payload) {
    direct::Request first;
    auto rest = payload;
    if (!take(rest, direct::Kind::request, first)) return;
    Caller* const caller = caller_of(first.token);
    if (caller != nullptr) hold(*caller);
    if (caller == nullptr || on_requests(*caller, bundle.count, payload)) return;
    // Drop the answers collected so far: they belong to this caller only.
    answers_.clear();
    answer_count_ = 0;
    log::error(Code::malformed, "a rank of job {:08x} says what cannot be understood: it is cut off",
               static_cast<std::uint32_t>(caller->job.high));
    drop(by_token_.at(first.token));
}

// Returns whether the bundle is well formed. The requests before a fault have been executed.
bool DirectPort::on_requests(Caller& caller, std::uint32_t count, std::span<const std::byte> payload) {
    std::uint64_t silent = 0;
    bool any_silent = false;
    for (std::uint32_t i = 0; i < count; ++i) {
        direct::Request request;
        std::span<const std::byte> operands, result;
        if (!take(payload, direct::Kind::request, request) || request.token != caller.token ||
            !rma::is_kind(request.operation) ||
            !direct::take(payload, request.access().operand_bytes(), operands))
            return false;
        const Status status = perform(caller, request, operands, result);
        any_silent = !is_error(status) && result.empty();
        silent = request.number;
        if (!any_silent) answer_together(caller, request.number, status, result);
    }
    if (any_silent) answer_together(caller, silent, Status::ok, {});
    send_answers(caller);
    return payload.empty();
}

Status DirectPort::perform(const Caller& caller, const direct::Request& request,
                           std::span<const std::byte> operands, std::span<const std::byte>& result) {
    if (request.bytes > direct::most_result_bytes) return Status::protocol;
    engine::DirectAccess call;
    static_cast<direct::StridedAccess&>(call) = request.access();
    call.job = caller.job;
    call.team = request.team;
    call.window = request.window;
    call.origin = request.origin;
    call.origin_job = caller.rank;
    call.operands = operands;
    const std::uint64_t traced = trace::on() ? trace::new_id() : 0;
    if (traced != 0) [[unlikely]]
        trace::begin(trace::Kind::operation, traced, request.bytes, caller.rank,
                     name_in_trace(call.kind).number());
    const Status status = engine_.one_sided_at_once(call, result);
    if (traced != 0) [[unlikely]]
        trace::end(trace::Kind::operation, traced);
    if (is_error(status)) result = {};
    return status;
}

void DirectPort::answer(Caller& caller, std::uint64_t number, Status status,
                        std::span<const std::byte> result) {
    std::size_t at = 0;
    do {
        const std::size_t bytes = std::min<std::size_t>(result.size() - at, direct::piece_bytes);
        const direct::Answer header{direct::Kind::answer, static_cast<std::int32_t>(status), number,
                                    static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)};
        // If the caller is gone, on_endpoint_lost handles it.
        (void)transport_->post(*caller.endpoint, direct::bytes_of(header), result.subspan(at, bytes));
        at += bytes;
    } while (at < result.size());
}

void DirectPort::answer_together(Caller& caller, std::uint64_t number, Status status,
                                 std::span<const std::byte> result) {
    const direct::Answer header{direct::Kind::answer, static_cast<std::int32_t>(status), number, 0,
                                static_cast<std::uint32_t>(result.size())};
    if (answers_.size() + sizeof header + result.size() > transport::Transport::max_post)
        send_answers(caller);
    if (sizeof header + result.size() > transport::Transport::max_post)
        return answer(caller, number, status, result);
    direct::append(answers_, header, result);
    ++answer_count_;
}

void DirectPort::send_answers(Caller& caller) {
    if (answer_count_ == 0) return;
    const direct::Bundle header{direct::Kind::answers, answer_count_};
    (void)transport_->post(*caller.endpoint, direct::bytes_of(header), answers_);
    answers_.clear();
    answer_count_ = 0;
}

void DirectPort::say(Caller& caller, const control::Message& message) {
    const direct::Handshake header{direct::Kind::handshake, caller.path};
    (void)transport_->post(*caller.endpoint, direct::bytes_of(header), control::encode_message(message));
}

void DirectPort::on_endpoint_lost(transport::Endpoint& endpoint) {
    const auto found = std::find_if(callers_.begin(), callers_.end(),
                                    [&](const Caller& each) { return each.endpoint == &endpoint; });
    if (found != callers_.end()) drop(found);
}

void DirectPort::drop(Callers::iterator caller) {
    if (caller->token == 0) {
        --unproved_;
    } else {
        by_token_.erase(caller->token);
    }
    transport_->disconnect(caller->endpoint);
    callers_.erase(caller);
}

}  // namespace offpath::proxy
