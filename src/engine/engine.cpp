// The engine's public interface, and its round of work.
#include "engine/engine.h"

#include "base/log.h"
#include "engine/impl.h"

#include <algorithm>
#include <cstring>

namespace offpath::engine {
namespace {

// A session that names more proxies than this does not connect to them ahead of use. In a large job, most
// pairs of proxies never exchange anything.
constexpr std::size_t most_greeted = 64;

}  // namespace

// Members that are made earlier store references to members that are made later. Their constructors do not
// use them.
Engine::Impl::Impl(transport::Transport& its_transport, ProxyId self, const Config& its_config,
                   const Surroundings& surroundings)
    : Core(own_config, its_transport, own_peers, own_mover, own_random, own_counters),
      own_config(its_config),
      own_random(surroundings.seed),
      own_peers(its_transport, self, own_counters,
                surroundings.clock != nullptr ? *surroundings.clock : steady_clock, own_config.ended_peers),
      own_mover(its_transport, own_peers, own_random, own_config, own_counters, surroundings.yields),
      schedules(*this),
      messages(*this),
      one_sided(*this) {}

Engine::Engine(transport::Transport& transport, ProxyId self, const Config& config,
               const Surroundings& surroundings)
    : impl_(std::make_unique<Impl>(transport, self, config, surroundings)) {
    transport.set_handler(this);
}

Engine::~Engine() = default;

void Engine::close() {
    (void)impl_->one_sided.send_bundles();
    impl_->peers.close();
    impl_->transport.set_handler(nullptr);
}

const Counters& Engine::counters() const {
    return impl_->counters;
}

Status Engine::open_session(const JobId& job, const JobSecret& secret, std::uint32_t job_rank,
                            memory::HostMemory& memory, Session** session) {
    auto made = std::make_unique<Session>();
    if (const Status status = impl_->peers.join(job, secret, &made->its_job); status != Status::ok)
        return status;
    made->job = job;
    made->job_rank = job_rank;
    made->memory = &memory;
    *session = made.get();
    impl_->sessions.push_back(std::move(made));
    return Status::ok;
}

void Engine::use_kernels(Session& session, Kernels& kernels) {
    session.kernels = &kernels;
}

Status Engine::add_proxy(Session& session, ProxyId proxy, std::span<const std::byte> address) {
    if (proxy == 0) return Status::invalid;
    if (proxy == impl_->peers.self()) return Status::ok;
    return impl_->peers.add(*session.its_job, proxy, address);
}

void Engine::greet(const Session& session) {
    if (session.its_job->peers.size() >= most_greeted) return;
    for (auto& [id, peer] : session.its_job->peers)
        impl_->peers.greet(peer);
}

bool Engine::close_session(Session* session, Status reason) {
    return impl_->close_session(*session, reason);
}

std::size_t Engine::outstanding(const Session& session) const {
    return impl_->outstanding(session);
}

Status Engine::create_team(Session& session, std::uint64_t team_id, std::uint32_t rank,
                           std::span<const Member> members, Team** team) {
    return impl_->create_team(session, team_id, rank, members, team);
}

void Engine::destroy_team(Team* team) {
    impl_->destroy(*team);
}

void Engine::trim() {
    if (!impl_->sessions.empty()) return;
    impl_->mover.trim();
    for (Tenant* tenant : impl_->tenants)
        tenant->trim();
}

Status Engine::start(Team& team, const Plan& plan, std::uint32_t sequence,
                     std::span<const memory::HostRange> buffers, Completion* done,
                     shared_parts::Word* parts) {
    return impl_->schedules.start(team, plan, sequence, buffers, done, parts);
}

Status Engine::send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                    Completion* done) {
    return impl_->messages.send(team, buffer, dest, tag, done);
}

Status Engine::recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, std::uint32_t tag,
                    MessageInfo* info, Completion* done, std::uint32_t mask) {
    return impl_->messages.recv(team, buffer, {source, tag, mask}, info, done);
}

Status Engine::probe(Team& team, std::uint32_t source, std::uint32_t mask, std::uint32_t tag, bool waits,
                     MessageInfo* info, Completion* done) {
    return impl_->messages.probe(team, {source, tag, mask}, waits, info, done);
}

Status Engine::keyed_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest,
                          const MessageKey& key, Completion* done) {
    return impl_->messages.keyed_send(team, buffer, dest, key, done);
}

Status Engine::keyed_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                          const MessageKey& key, MessageInfo* info, Completion* done) {
    return impl_->messages.keyed_recv(team, buffer, source, key, info, done);
}

void Engine::keyed_cancel(Team& team, std::uint32_t source, const MessageKey& key) {
    impl_->messages.keyed_cancel(team, source, key);
}

void Engine::keyed_store(Team& team, std::uint32_t dest, const MessageKey& key) {
    impl_->messages.keyed_store(team, dest, key);
}

Status Engine::create_window(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                             Window** window) {
    return impl_->one_sided.create(team, id, memory, dynamic, window);
}

Status Engine::attach_window(Window& window, const memory::HostRange& memory, std::uint64_t begin) {
    return impl_->one_sided.attach(window, memory, begin);
}

Status Engine::detach_window(Window& window, std::uint64_t begin, Completion* done) {
    return impl_->one_sided.detach(window, begin, done);
}

Status Engine::keep_ledger(Window& window, const memory::HostRange& memory) {
    return impl_->one_sided.keep_ledger(window, memory);
}

Status Engine::destroy_window(Window& window, Completion* done) {
    return impl_->one_sided.destroy(window, done);
}

Status Engine::one_sided(Window& window, OneSidedCall call, Completion* done) {
    return impl_->one_sided.start(window, std::move(call), done);
}

Status Engine::one_sided_at_once(const DirectAccess& call, std::span<const std::byte>& result) {
    return impl_->one_sided.at_once(call, result);
}

void Engine::one_sided_failed(Window& window, std::uint32_t target, Status status) {
    impl_->one_sided.failed(window, target, status);
}

Status Engine::flush_window(Window& window, std::uint32_t target, Completion* done) {
    return impl_->one_sided.flush(window, target, done);
}

bool Engine::advance() {
    return impl_->advance();
}

bool Engine::has_work() const {
    return impl_->peers.has_work() || std::any_of(impl_->tenants.begin(), impl_->tenants.end(),
                                                  [](const Tenant* tenant) { return tenant->has_work(); });
}

bool Engine::awaits_others() const {
    for (const auto& session : impl_->sessions)
        if (!session->its_job->peers.empty() && outstanding(*session) > 0) return true;
    return false;
}

void Engine::beat(std::uint64_t now_ns, std::uint64_t limit_ns) {
    impl_->peers.beat(now_ns, limit_ns, [this] {
        for (const auto& session : impl_->sessions)
            for (const Tenant* tenant : impl_->tenants)
                tenant->mark_awaited(*session);
    });
}

bool Engine::Impl::advance() {
    constexpr int passes = 4;
    bool moved = false;
    while (!peers.newly_lost().empty()) {
        Peer* peer = peers.newly_lost().back();
        peers.newly_lost().pop_back();
        peer_lost(*peer);
        moved = true;
    }
    const bool turns = one_sided.begin_round();
    for (int pass = 0; pass < passes; ++pass) {
        bool again = schedules.advance();
        auto& local = peers.local_messages();
        for (std::size_t n = local.size(); n > 0; --n) {
            const Peers::LocalMessage message = local.front();
            local.pop_front();
            dispatch(message.header(), nullptr, peers.me());
            again = true;
        }
        again |= one_sided.advance();
        again |= mover.pump_held();
        again |= mover.pump_active();
        moved |= again;
        if (!again) break;
    }
    // Operations on windows that fill a whole round are copies too, so the copies here do not wait for them.
    moved |= mover.pump_copies(moved, one_sided.spent());
    for (Tenant* tenant : tenants)
        moved |= tenant->finish();
    return moved || turns;
}

void Engine::on_endpoint_lost(transport::Endpoint& endpoint) {
    for (Peer* peer : impl_->peers.endpoint_lost(endpoint))
        impl_->peer_lost(*peer);
}

void Engine::on_message(const transport::Incoming& message) {
    ++impl_->counters.messages_received;
    Stamp stamp{};
    if (message.header.size() >= sizeof stamp) std::memcpy(&stamp, message.header.data(), sizeof stamp);
    const auto header = message.header.subspan(std::min(sizeof stamp, message.header.size()));
    if (Peer* const from = impl_->peers.sender_of(stamp, header))
        return impl_->dispatch(header, &message, *from);
    if (message.rendezvous != nullptr) impl_->transport.discard(message.rendezvous);
    if (!impl_->peers.answer_late(stamp, header)) impl_->peers.refuse("a message without a pass", nullptr);
}

}  // namespace offpath::engine
