#include "client/direct_paths.h"

#include "base/log.h"
#include "client/windows.h"
#include "control/authentication.h"
#include "transport/encrypted/encrypted.h"
#include "transport/tcp/tcp_transport.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace offpath::client {

namespace direct = rma::direct;

namespace {

// A request's number holds the path's index above this bit, and below it the request's number on that path.
constexpr unsigned index_shift = 40;
// The most requests that may be outstanding on a path before answers are read. A proxy keeps far more answers
// than that for a peer that does not read.
constexpr std::size_t most_pending = 4096;
constexpr std::uint64_t most_awaited_bytes = 256 << 10;

}  // namespace

DirectPaths::DirectPaths(std::uint64_t job_high, std::uint64_t job_low, std::uint32_t rank,
                         std::vector<Home> homes)
    : job_high_(job_high), job_low_(job_low), rank_(rank), homes_(std::move(homes)) {}

DirectPaths::~DirectPaths() {
    if (transport_ != nullptr) transport_->set_handler(nullptr);
    for (Home& home : homes_)
        control::wipe(home.secret);
}

DirectPaths::Path* DirectPaths::open_path(std::uint32_t rank) {
    const Home& home = homes_[rank];
    if (home.address.empty() || home.proxy == homes_[rank_].proxy || unusable_) return nullptr;
    const auto known = by_proxy_.find(home.proxy);
    Path* const path = known != by_proxy_.end() ? known->second : make_path(home, rank);
    if (path == nullptr || path->state == Path::State::closed) return nullptr;
    if (path->state == Path::State::open) return path;
    progress();
    return path->state == Path::State::open ? path : nullptr;
}

DirectPaths::Path* DirectPaths::make_path(const Home& home, std::uint32_t rank) {
    if (transport_ == nullptr) {
        transport::TcpConfig config;
        config.listen = false;
        std::string problem;
        if (transport::make_tcp_transport(config, transport_, problem) != Status::ok) {
            log::info("no direct paths to other proxies: {}", problem);
            unusable_ = true;
            return nullptr;
        }
        // The daemons of a job encrypt all or not at all.
        if (transport::is_encrypted_address(home.address))
            transport_ = transport::make_encrypted_transport(std::move(transport_));
        transport_->set_handler(this);
    }
    auto made = std::make_unique<Path>();
    Path* const path = made.get();
    path->proxy = home.proxy;
    path->index = static_cast<std::uint32_t>(paths_.size());
    path->target = rank;
    paths_.push_back(std::move(made));
    by_proxy_.emplace(home.proxy, path);
    if (transport_->connect(home.address, &path->endpoint) != Status::ok) {
        path->state = Path::State::closed;
        return nullptr;
    }
    say(*path, control::DirectCall{transport_->address()});
    return path;
}

void DirectPaths::say(Path& path, const control::Message& message) {
    const direct::Handshake header{direct::Kind::handshake, path.index};
    (void)transport_->post(*path.endpoint, direct::bytes_of(header), control::encode_message(message));
}

bool DirectPaths::busy(std::uint32_t rank, std::uint64_t end) const {
    const auto known = by_proxy_.find(homes_[rank].proxy);
    return known != by_proxy_.end() && known->second->owes_before(end);
}

bool DirectPaths::busy(std::uint64_t end) const {
    return std::ranges::any_of(paths_, [end](const auto& path) { return path->owes_before(end); });
}

void DirectPaths::waited(std::uint32_t rank) {
    const auto known = by_proxy_.find(homes_[rank].proxy);
    if (known == by_proxy_.end()) return;
    known->second->in_a_row = 0;
    send_bundle(*known->second);
}

void DirectPaths::waited() {
    for (const auto& path : paths_) {
        path->in_a_row = 0;
        send_bundle(*path);
    }
}

void DirectPaths::send_bundles() {
    for (const auto& path : paths_)
        send_bundle(*path);
}

void DirectPaths::add(Path& path, direct::Request& request, const Asker& asker) {
    request.kind = direct::Kind::request;
    request.token = path.token;
    request.number = std::uint64_t{path.index} << index_shift | path.numbers++;
    path.pending.push_back({request.number, orders_++, asker});
    path.awaited_bytes += asker.result_bytes;
    path.in_a_row = asker.outcome != nullptr ? 0 : path.in_a_row + 1;
}

void DirectPaths::ask(Path& path, direct::Request request, std::span<const std::byte> operands,
                      const Asker& asker) {
    send_bundle(path);
    add(path, request, asker);
    // If the peer is gone, on_endpoint_lost tells all pending requests.
    (void)transport_->post(*path.endpoint, direct::bytes_of(request), operands);
}

void DirectPaths::ask_with_others(Path& path, direct::Request request, std::span<const std::byte> operands,
                                  const Asker& asker) {
    if (path.bundle.size() + sizeof request + operands.size() > transport::Transport::max_post)
        send_bundle(path);
    add(path, request, asker);
    direct::append(path.bundle, request, operands);
    if (path.bundled++ == 0) bundles_.fetch_add(1, std::memory_order_relaxed);
}

void DirectPaths::send_bundle(Path& path) {
    if (path.bundled == 0) return;
    const direct::Bundle header{direct::Kind::requests, path.bundled};
    (void)transport_->post(*path.endpoint, direct::bytes_of(header), path.bundle);
    drop_bundle(path);
}

void DirectPaths::drop_bundle(Path& path) {
    path.bundle.clear();
    if (std::exchange(path.bundled, 0) > 0) bundles_.fetch_sub(1, std::memory_order_relaxed);
}

bool DirectPaths::has_room(Path& path) {
    const auto full = [&] {
        return path.pending.size() >= most_pending || path.awaited_bytes >= most_awaited_bytes;
    };
    if (full()) progress();
    return path.state == Path::State::open && !full();
}

void DirectPaths::on_message(const transport::Incoming& message) {
    if (message.rendezvous != nullptr) return transport_->discard(message.rendezvous);
    const std::span payload(message.data, message.bytes);
    direct::Answer answer;
    direct::Bundle bundle;
    direct::Handshake handshake;
    if (read(message.header, direct::Kind::answer, answer)) return on_answer(answer, payload);
    if (read(message.header, direct::Kind::answers, bundle)) return on_answers(bundle, payload);
    if (read(message.header, direct::Kind::handshake, handshake) && handshake.path < paths_.size())
        on_handshake(*paths_[handshake.path], payload);
}

void DirectPaths::on_handshake(Path& path, std::span<const std::byte> payload) {
    control::Message message;
    std::string problem;
    if (control::decode_message(payload, message, problem) != Status::ok) return;
    const control::Secret& secret = homes_[path.target].secret;
    if (const auto* challenge = std::get_if<control::Challenge>(&message);
        challenge != nullptr && path.state == Path::State::calling) {
        path.challenge = challenge->nonce;
        path.nonce = control::draw_nonce();
        control::DirectProof proof{path.challenge, path.nonce, job_high_, job_low_, rank_, path.target, {}};
        proof.mac = control::handshake_mac(secret, path.challenge, path.nonce, proof);
        path.state = Path::State::proving;
        say(path, proof);
    } else if (const auto* welcome = std::get_if<control::DirectWelcome>(&message);
               welcome != nullptr && path.state == Path::State::proving) {
        if (!control::same(welcome->mac,
                           control::handshake_mac(secret, path.challenge, path.nonce, *welcome))) {
            log::error(Code::slower_way,
                       "the proxy of rank {} does not know that rank's secret: no direct path to it",
                       path.target);
            return close(path);
        }
        path.token = welcome->token;
        path.state = Path::State::open;
    }
}

void DirectPaths::on_answer(const direct::Answer& answer, std::span<const std::byte> result) {
    const std::uint64_t index = answer.number >> index_shift;
    if (index >= paths_.size()) return;
    Path& path = *paths_[index];
    while (!path.pending.empty() && path.pending.front().number < answer.number &&
           path.pending.front().asker.result_bytes == 0) {
        const Asker before = path.pending.front().asker;
        path.pending.pop_front();
        end(before, Status::ok);
    }
    if (path.pending.empty() || path.pending.front().number != answer.number) {
        log::error(Code::malformed, "the proxy of rank {} answers what was not asked", path.target);
        return close(path);
    }
    const Asker asker = path.pending.front().asker;
    const auto status = static_cast<Status>(answer.status);
    if (!is_error(status)) {
        if (answer.offset > asker.result_bytes || result.size() > asker.result_bytes - answer.offset) {
            log::error(Code::malformed, "the proxy of rank {} brings more than it was asked for",
                       path.target);
            return close(path);
        }
        if (!result.empty()) std::memcpy(asker.result + answer.offset, result.data(), result.size());
        if (answer.offset + result.size() < asker.result_bytes) return;
    }
    path.awaited_bytes -= asker.result_bytes;
    path.pending.pop_front();
    end(asker, status);
}

void DirectPaths::on_answers(const direct::Bundle& bundle, std::span<const std::byte> payload) {
    for (std::uint32_t i = 0; i < bundle.count; ++i) {
        direct::Answer answer;
        std::span<const std::byte> result;
        if (!take(payload, direct::Kind::answer, answer) || !direct::take(payload, answer.bytes, result)) {
            log::error(Code::malformed, "a proxy's answers were not understood: no direct paths any more");
            // We do not know whose answers these are, so their owners would wait for ever.
            for (const auto& path : paths_)
                close(*path);
            return;
        }
        on_answer(answer, result);
    }
}

void DirectPaths::end(const Asker& asker, Status status) {
    if (asker.outcome != nullptr) {
        asker.outcome->over = true;
        asker.outcome->status = status;
    } else if (is_error(status) && asker.window->unreported == Status::ok) {
        asker.window->unreported = status;
    }
}

void DirectPaths::close(Path& path) {
    if (path.state == Path::State::closed) return;
    path.state = Path::State::closed;
    transport_->disconnect(path.endpoint);
    path.endpoint = nullptr;
    drop_bundle(path);
    path.awaited_bytes = 0;
    std::deque<Path::Pending> pending;
    pending.swap(path.pending);
    for (const Path::Pending& each : pending)
        end(each.asker, Status::peer_lost);
}

void DirectPaths::look(std::uint64_t now_ns, std::uint64_t limit_ns) {
    const std::uint64_t passed_ns = std::min(now_ns - looked_ns_, limit_ns / 4);
    looked_ns_ = now_ns;
    for (const auto& path : paths_) {
        if (path->pending.size() <= path->bundled) {  // it was asked nothing yet
            path->looked_number = Path::none;
            continue;
        }
        const std::uint64_t oldest = path->pending.front().number;
        const bool same = std::exchange(path->looked_number, oldest) == oldest;
        path->silent_ns = same ? path->silent_ns + passed_ns : 0;
        if (path->silent_ns < limit_ns) continue;
        log::error(Code::slower_way,
                   "the proxy of rank {} has not answered for {:.1f} s: no direct path to it", path->target,
                   static_cast<double>(path->silent_ns) * 1e-9);
        close(*path);
    }
}

void DirectPaths::on_endpoint_lost(transport::Endpoint& endpoint) {
    for (auto& path : paths_)
        if (path->endpoint == &endpoint) return close(*path);
}

}  // namespace offpath::client
