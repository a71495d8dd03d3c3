// The engine's public face: sessions, teams, and the round of work.
#include "engine/engine.h"

#include "base/log.h"
#include "engine/onesided.h"

#include <cstdlib>
#include <cstring>
#include <thread>

namespace offpath::engine {
namespace {

constexpr std::size_t page = 4096;
// A tile and its counterpart stay in the second-level cache. Its size is a whole number of elements of any
// type.
constexpr std::size_t most_tile_bytes = 64 << 10, least_tile_bytes = 64;
constexpr unsigned most_rounds_without_copy = 16;

}  // namespace

Engine::Impl::Impl(Engine& outer_, transport::Transport& transport_, ProxyId self_, const Config& config_)
    : outer(outer_),
      transport(transport_),
      self(self_),
      config(config_),
      scratch(config_.scratch_kept_bytes),
      arena(nullptr, [](std::byte* p) { std::free(p); }),
      tile_bytes(std::min(config_.chunk_bytes, most_tile_bytes) / least_tile_bytes * least_tile_bytes) {
    const std::size_t chunk = (config.chunk_bytes + page - 1) / page * page;
    const std::size_t count = config.send_bounces + config.recv_bounces;
    const std::size_t tile_count = std::max<std::size_t>(config.reduce_tiles, 2);
    const std::size_t tile_room = (tile_bytes + page - 1) / page * page;
    arena.reset(static_cast<std::byte*>(std::aligned_alloc(page, chunk * count + tile_room * tile_count)));
    if (!arena) throw std::bad_alloc();
    for (std::size_t i = 0; i < count; ++i) {
        (i < config.send_bounces ? send_bounces : recv_bounces).push_back(arena.get() + i * chunk);
    }
    for (std::size_t i = 0; i < tile_count; ++i)
        tiles.push_back(arena.get() + chunk * count + i * tile_room);
    me.id = self;
    me.self = true;
    one_sided = std::make_unique<OneSided>(*this);
}

Engine::Impl::~Impl() = default;

Engine::Engine(transport::Transport& transport, ProxyId self, const Config& config)
    : impl_(std::make_unique<Impl>(*this, transport, self, config)) {
    transport.set_handler(this);
}

Engine::~Engine() = default;

void Engine::close() {
    (void)impl_->one_sided->send_bundles();
    impl_->closed = true;
    impl_->transport.set_handler(nullptr);
}

const Counters& Engine::counters() const {
    return impl_->counters;
}

Status Engine::open_session(const JobId& job, const JobSecret& secret, std::uint32_t job_rank,
                            memory::HostMemory& memory, Session** session) {
    auto made = std::make_unique<Session>();
    std::unique_ptr<Job>& known = impl_->jobs[job];
    if (known == nullptr) {
        known = std::make_unique<Job>();
        known->id = job;
        known->secret = secret;
    } else if (known->secret != secret) {
        return Status::access;
    }
    ++known->sessions;
    made->job = job;
    made->its_job = known.get();
    made->job_rank = job_rank;
    made->memory = &memory;
    made->acquaintances.insert(&impl_->me);
    *session = made.get();
    impl_->sessions.push_back(std::move(made));
    return Status::ok;
}

bool Engine::close_session(Session* session, Status reason) {
    const bool lost = !session->closing && reason == Status::peer_lost;
    session->closing = true;
    if (lost) {
        const Exchange gone{
            Kind::abort, 0, {session->job.high, session->job.low, every_team, session->job_rank, 0}, 0, 0,
            0,           0};
        for (Peer* peer : session->acquaintances)
            impl_->tell(*peer, bytes_of(gone));
    }
    for (auto& team : session->teams) {
        std::vector<Instance*> running;
        for (auto& [sequence, instance] : team->instances)
            running.push_back(instance.get());
        for (Instance* instance : running)
            impl_->fail(*instance, reason, true);
        impl_->cancel_basics(*team, reason);
    }
    impl_->one_sided->cancel(*session, reason);
    if (session->pieces > 0 || outstanding(*session) > 0) return false;

    impl_->one_sided->forget(*session);
    const JobId job = session->job;
    Job& its_job = *session->its_job;
    for (auto& team : session->teams) {
        its_job.early_bytes -= team->early_bytes;
        impl_->teams.erase({job.high, job.low, team->id, team->rank});
    }
    std::erase_if(impl_->sessions, [&](const auto& owned) { return owned.get() == session; });
    if (--its_job.sessions == 0) impl_->end_job(its_job);
    return true;
}

std::size_t Engine::outstanding(const Session& session) const {
    std::size_t count = 0;
    for (const auto& team : session.teams)
        count += team->instances.size() + team->basics.size();
    return count + impl_->one_sided->outstanding(session);
}

Status Engine::create_team(Session& session, std::uint64_t team_id, std::uint32_t rank,
                           std::span<const Member> members, Team** team) {
    const TeamKey key{session.job.high, session.job.low, team_id, rank};
    if (rank >= members.size() || members[rank].job_rank != session.job_rank || impl_->teams.contains(key))
        return Status::invalid;
    auto made = std::make_unique<Team>();
    made->session = &session;
    made->id = team_id;
    made->rank = rank;
    for (const Member& member : members) {
        Peer* peer = impl_->find_peer(session, member.proxy);
        if (peer == nullptr) {
            log::error("team {:x} names proxy {:x} of job rank {}, which was never announced", team_id,
                       member.proxy, member.job_rank);
            return Status::invalid;
        }
        made->peers.push_back(peer);
        made->job_ranks.push_back(member.job_rank);
    }
    made->send_order.resize(members.size(), 0);
    made->receive_order.resize(members.size());
    for (const auto& [member, proxy] : session.gone)
        made->mark_gone(member, proxy);
    *team = made.get();
    impl_->teams.emplace(key, made.get());
    session.teams.push_back(std::move(made));
    if (auto it = impl_->orphans.find(key); it != impl_->orphans.end()) {
        std::vector<EarlyMessage> waiting = std::move(it->second);
        impl_->orphans.erase(it);
        for (EarlyMessage& message : waiting)
            impl_->give_room_back(*session.its_job, nullptr, message.payload.size());
        for (EarlyMessage& message : waiting)
            impl_->on_exchange(message.header, message.payload, *message.from);
    }
    return Status::ok;
}

void Engine::destroy_team(Team* team) {
    team->destroyed = true;
    if (!team->idle()) return;
    Session& session = *team->session;
    session.its_job->early_bytes -= team->early_bytes;
    impl_->teams.erase({session.job.high, session.job.low, team->id, team->rank});
    std::erase_if(session.teams, [&](const auto& owned) { return owned.get() == team; });
}

void Engine::trim() {
    Impl& impl = *impl_;
    if (!impl.sessions.empty()) return;
    impl.sends.release_if_unused();
    impl.recvs.release_if_unused();
    impl.pieces.release_if_unused();
    impl.basics.release_if_unused();
    impl.passes.release_if_unused();
    impl.scratch.clear();
    impl.one_sided->trim();
}

Status Engine::start(Team& team, const Plan& plan, std::uint32_t sequence,
                     std::span<const memory::HostRange> buffers, Completion* done) {
    return impl_->start(team, plan, sequence, buffers, done);
}

Status Engine::send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                    Completion* done) {
    return impl_->send(team, buffer, dest, tag, done);
}

Status Engine::recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, std::uint32_t tag,
                    MessageInfo* info, Completion* done) {
    return impl_->recv(team, buffer, source, tag, info, done);
}

Status Engine::mail_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, const MailKey& key,
                         Completion* done) {
    return impl_->mail_send(team, buffer, dest, key, done);
}

Status Engine::mail_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                         const MailKey& key, MessageInfo* info, Completion* done) {
    return impl_->mail_recv(team, buffer, source, key, info, done);
}

void Engine::mail_cancel(Team& team, std::uint32_t source, const MailKey& key) {
    impl_->mail_cancel(team, source, key);
}

void Engine::mail_store(Team& team, std::uint32_t dest, const MailKey& key) {
    impl_->mail_store(team, dest, key);
}

Status Engine::create_window(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                             Window** window) {
    return impl_->one_sided->create(team, id, memory, dynamic, window);
}

Status Engine::attach_window(Window& window, const memory::HostRange& memory, std::uint64_t begin) {
    return impl_->one_sided->attach(window, memory, begin);
}

Status Engine::detach_window(Window& window, std::uint64_t begin, Completion* done) {
    return impl_->one_sided->detach(window, begin, done);
}

Status Engine::destroy_window(Window& window, Completion* done) {
    return impl_->one_sided->destroy(window, done);
}

Status Engine::one_sided(Window& window, OneSidedCall call, Completion* done) {
    return impl_->one_sided->start(window, std::move(call), done);
}

Status Engine::one_sided_at_once(const DirectOperation& call, std::span<const std::byte>& result) {
    return impl_->one_sided->at_once(call, result);
}

void Engine::one_sided_failed(Window& window, std::uint32_t target, Status status) {
    impl_->one_sided->failed(window, target, status);
}

Status Engine::flush_window(Window& window, std::uint32_t target, Completion* done) {
    return impl_->one_sided->flush(window, target, done);
}

bool Engine::advance() {
    return impl_->advance();
}

bool Engine::has_work() const {
    const Impl& impl = *impl_;
    return !impl.newly_lost.empty() || !impl.runnable.empty() || !impl.local_messages.empty() ||
           !impl.finished.empty() || !impl.finished_basics.empty() || !impl.ready_passes.empty() ||
           impl.one_sided->has_work();
}

Team* Engine::Impl::find_team(const Route& route, bool as_dest) {
    auto it = teams.find({route.job_high, route.job_low, route.team, as_dest ? route.dest : route.source});
    return it == teams.end() ? nullptr : it->second;
}

// A copy in memory takes this core's time and no link's, so it waits until the links have their fill, those
// of other proxies on the same core too; but not for ever, and not for operations on windows that fill whole
// rounds, which are such work themselves. `moved`: something else has moved in this round.
bool Engine::Impl::pump_copies(bool moved) {
    if (copies.empty()) return false;
    if (moved && !one_sided->spent() && ++rounds_without_copy < most_rounds_without_copy) return false;
    rounds_without_copy = 0;
    bool copied = false;
    // One that waits for memory must not stop those behind it.
    for (std::size_t tries = copies.size(); tries > 0 && !copied; --tries)
        copied = pump_all(copies, 1);
    if (!moved) std::this_thread::yield();
    return copied;
}

bool Engine::Impl::advance() {
    bool moved = false;
    while (!newly_lost.empty()) {
        Peer* peer = newly_lost.back();
        newly_lost.pop_back();
        peer_lost(*peer);
        moved = true;
    }
    const bool turns = one_sided->begin_round();
    for (int round = 0; round < 4; ++round) {
        bool again = false;
        for (std::size_t n = runnable.size(); n > 0; --n) {
            Instance* instance = runnable.front();
            runnable.pop_front();
            instance->queued = false;
            again |= run_ready(*instance);
        }
        for (std::size_t n = local_messages.size(); n > 0; --n) {
            const LocalMessage message = local_messages.front();
            local_messages.pop_front();
            dispatch({message.bytes.data(), message.size}, nullptr, me);
            again = true;
        }
        again |= one_sided->advance();
        again |= pump_held();
        again |= pump_passes();
        again |= pump_all(active, active.size());
        moved |= again;
        if (!again) break;
    }
    moved |= pump_copies(moved);
    while (!finished.empty()) {
        std::vector<Instance*> batch;
        batch.swap(finished);
        for (Instance* instance : batch)
            finish_instance(*instance);
        moved = true;
    }
    while (!finished_basics.empty()) {
        std::vector<BasicOp*> batch;
        batch.swap(finished_basics);
        for (BasicOp* basic : batch) {
            Team* team = basic->team;
            Completion* done = basic->done;
            const Status status = basic->status;
            team->basics.erase(basic);
            const std::shared_ptr<StoredMail> kept = std::move(basic->kept);
            if (kept != nullptr && kept->receive == basic) kept->receive = nullptr;
            basics.give_back(basic);
            (is_error(status) ? counters.instances_failed : counters.instances_done)++;
            if (done != nullptr) (*done)(status);
            if (team->destroyed && team->idle()) outer.destroy_team(team);
        }
        moved = true;
    }
    return one_sided->send_bundles() || moved || turns;
}

void Engine::Impl::finish_instance(Instance& instance) {
    Team* team = instance.team;
    Completion* done = instance.done;
    const Status status = instance.status;
    auto it = team->instances.find(instance.sequence);
    std::unique_ptr<Instance> owned = std::move(it->second);
    team->instances.erase(it);
    const Plan* plan = owned->plan;
    for (ScratchPool::Buffer& buffer : owned->scratch)
        scratch.give_back(std::move(buffer));
    owned->scratch.clear();
    plan->give_back(std::move(owned));
    (is_error(status) ? counters.instances_failed : counters.instances_done)++;
    if (done != nullptr) (*done)(status);
    if (team->destroyed && team->idle()) outer.destroy_team(team);
}

void Engine::on_message(const transport::Incoming& message) {
    ++impl_->counters.messages_received;
    Stamp stamp{};
    if (message.header.size() >= sizeof stamp) std::memcpy(&stamp, message.header.data(), sizeof stamp);
    const auto header = message.header.subspan(std::min(sizeof stamp, message.header.size()));
    if (Peer* const from = impl_->sender_of(stamp, header)) return impl_->dispatch(header, &message, *from);
    if (message.rendezvous != nullptr) impl_->transport.discard(message.rendezvous);
    const auto ended = impl_->ended_peers.find(stamp.pass);
    if (ended == impl_->ended_peers.end()) return impl_->refuse("a message without a pass", nullptr);
    impl_->on_late_message(ended->second, header);
}

}  // namespace offpath::engine
