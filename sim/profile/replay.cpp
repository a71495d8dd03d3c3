#include "sim/profile/replay.h"

#include "collectives/selection.h"
#include "engine/schedules/plan.h"
#include "sim/profile/cursor.h"
#include "sim/profile/routes.h"
#include "sim/programs/rank.h"
#include "sim/programs/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <unordered_map>

namespace offpath::sim {
namespace {

enum class Action : std::uint8_t {
    unknown,
    nothing,
    send,
    receive,
    exchange,
    probe,
    collective,
    complete,
    access,
    flush,
    fence
};

struct Known {
    Action action = Action::unknown;
    bool posts = false;    // the call leaves a request
    bool on_host = false;  // collectives: the ranks' libraries execute it
    std::unique_ptr<engine::Plan> plan;
    std::vector<Buffer> buffers;
    std::vector<memory::HostRange> ranges;
    rma::OpKind access = rma::OpKind::put;
};

struct PlayedWindow {
    engine::Window* window = nullptr;
    bool on_host = false;
    std::unique_ptr<engine::Plan> barrier;  // of its fences
};

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// One rank's replay: its teams, its requests, and what each of its calls is.
class Player {
  public:
    Player(Cluster& cluster, std::uint32_t rank, const std::vector<RankProfile>& profiles,
           const Routes& routes, Replayed& result)
        : cluster_(cluster),
          rank_(rank),
          profile_(profiles[rank]),
          profiles_(profiles),
          routes_(routes),
          result_(result) {
        const RankProfile& profile = profile_;
        library_teams_.resize(profile.communicators.size());
        device_teams_.resize(profile.communicators.size());
        library_sequences_.resize(profile.communicators.size());
        device_sequences_.resize(profile.communicators.size());
        result.calls[rank].resize(profile.calls.size());
        for (const ProfiledCall& call : profile.calls)
            known_.push_back(learn(call));
        find_cancelled();
    }
    // Joins the team of a communicator, at its library and at its proxy.
    void join(std::size_t comm, std::uint64_t id);
    void join_world(std::size_t comm) {
        library_teams_[comm] = &cluster_.library_team_of(rank_);
        if (has_devices()) device_teams_[comm] = &cluster_.team_of(rank_);
    }
    // Exposes a window, in the order of the profile.
    void expose(const ProfiledWindow& window, std::uint64_t id, std::uint64_t bytes);

    Program play(Rank& rank);
    // Finds the receives that the program cancels. They are not replayed: they would wait for ever, or take
    // messages of others.
    void find_cancelled();

  private:
    Known learn(const ProfiledCall& call);
    // Whether the receiver takes the message by a matched probe, which is not replayed. The message would
    // wait for ever, so it is not replayed either.
    bool is_taken_by_probe(const ProfiledCall& call) const;
    Known learn_access(const ProfiledCall& call) const;
    bool has_devices() const { return cluster_.shape().engine == EngineKind::offpath; }
    engine::Team& library_team(std::int32_t comm) { return *library_teams_[static_cast<std::size_t>(comm)]; }
    engine::Team& device_team(std::int32_t comm) { return *device_teams_[static_cast<std::size_t>(comm)]; }
    std::vector<Operation> operations(const ProfiledCall& call, Known& known);
    Operation send(const ProfiledCall& call);
    Operation receive(const ProfiledCall& call, std::int32_t peer, std::int32_t tag, std::uint64_t bytes);
    // Both ends count the messages of a channel.
    MessageKey next_key(const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                        std::map<std::array<std::int32_t, 3>, std::uint64_t>& counts) const;
    Operation probe(const ProfiledCall& call);
    Operation start(const ProfiledCall& call, const engine::Plan& plan,
                    std::span<const memory::HostRange> ranges, std::int32_t comm, bool on_host);
    Operation access(const ProfiledCall& call, const Known& known);
    Operation flush(const ProfiledCall& call);
    // Whether the program must wait for operation `index` of the call.
    static bool leaves_at_once(const ProfiledCall& call, const Known& known, std::size_t index) {
        return call.bytes <= eager_bytes && index == 0 &&
               (known.action == Action::send || (known.action == Action::exchange && call.peer != null_peer));
    }
    void sweep(Rank& rank);

    Cluster& cluster_;
    const std::uint32_t rank_;
    const RankProfile& profile_;
    const std::vector<RankProfile>& profiles_;  // of all ranks
    const Routes& routes_;
    Replayed& result_;
    std::vector<engine::Team*> library_teams_, device_teams_;  // by communicator
    std::vector<std::uint32_t> library_sequences_, device_sequences_;
    std::vector<PlayedWindow> windows_;
    std::map<std::array<std::int32_t, 3>, std::uint64_t> sent_, received_;
    std::vector<Known> known_;
    std::unordered_map<std::uint64_t, Request*> outstanding_;  // by number of the post
    std::set<std::uint64_t> cancelled_;                        // likewise
    std::uint64_t posts_ = 0;
    std::vector<Request*> detached_;  // nobody waits for them before the end
};

void Player::join(std::size_t comm, std::uint64_t id) {
    const ProfiledCommunicator& its = profile_.communicators[comm];
    const auto create = [&](Worker& worker, engine::Session& session, engine::Team*& team, auto number_of) {
        std::vector<engine::Member> members;
        for (const std::uint32_t member : its.members)
            members.push_back({number_of(member) + 1, member});
        const Status status = worker.engine().create_team(session, id, its.rank, members, &team);
        if (is_error(status)) throw std::runtime_error(std::string("create_team: ") + to_string(status));
    };
    create(cluster_.library_of(rank_), cluster_.library_session_of(rank_), library_teams_[comm],
           [this](std::uint32_t member) { return cluster_.library_of(member).number(); });
    if (has_devices())
        create(cluster_.worker_of(rank_), cluster_.session_of(rank_), device_teams_[comm],
               [this](std::uint32_t member) { return cluster_.worker_of(member).number(); });
}

void Player::expose(const ProfiledWindow& window, std::uint64_t id, std::uint64_t bytes) {
    PlayedWindow& played = windows_.emplace_back();
    played.on_host = !has_devices() || !routes_.window_on_device(rank_, window.comm);
    Worker& worker = played.on_host ? cluster_.library_of(rank_) : cluster_.worker_of(rank_);
    engine::Team& team = played.on_host ? library_team(window.comm) : device_team(window.comm);
    const Status status =
        worker.engine().create_window(team, id, Buffer(cluster_, bytes).range(), false, &played.window);
    if (is_error(status)) throw std::runtime_error(std::string("create_window: ") + to_string(status));
    const ProfiledCommunicator& comm = profile_.communicators[static_cast<std::size_t>(window.comm)];
    played.barrier = std::make_unique<engine::Plan>(
        collectives::barrier({comm.rank, static_cast<std::uint32_t>(comm.members.size())}));
}

bool Player::is_taken_by_probe(const ProfiledCall& call) const {
    const std::vector<std::uint32_t>& members =
        profile_.communicators[static_cast<std::size_t>(call.comm)].members;
    const RankProfile& receiver = profiles_[members[static_cast<std::size_t>(call.peer)]];
    bool probes = false;
    for (const ProfiledCall& one : receiver.calls) {
        const bool exchanges = is_one_of(one.name, {"Sendrecv", "Sendrecv_replace"});
        const std::int32_t tag = exchanges ? one.from_tag : one.tag;
        if ((exchanges || is_one_of(one.name, {"Recv", "Irecv", "Start of Irecv"})) &&
            (tag == call.tag || tag == any_peer))
            return false;
        probes |= is_one_of(one.name, {"Mrecv", "Imrecv"});
    }
    return probes;
}

Known Player::learn(const ProfiledCall& call) {
    Known known;
    const std::string& name = call.name;
    if (is_one_of(name,
                  {"Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome"})) {
        known.action = Action::complete;
        return known;
    }
    if (is_one_of(name, {"Send_init", "Bsend_init", "Ssend_init", "Rsend_init", "Recv_init", "Request_free",
                         "Cancel"})) {
        known.action = Action::nothing;
        return known;
    }
    const bool sends = is_one_of(name, {"Send", "Bsend", "Ssend", "Rsend"});
    const bool posts_send = is_one_of(name, {"Isend", "Ibsend", "Issend", "Irsend", "Start of Isend"});
    const bool posts_receive = is_one_of(name, {"Irecv", "Start of Irecv"});
    const bool probes = is_one_of(name, {"Probe", "Iprobe"});
    const bool exchanges = is_one_of(name, {"Sendrecv", "Sendrecv_replace"});
    known.posts = posts_send || posts_receive;
    if (sends || posts_send || posts_receive || probes || exchanges || name == "Recv") {
        if (call.comm < 0) return known;
        known.action = sends || posts_send ? Action::send
                       : probes            ? Action::probe
                       : exchanges         ? Action::exchange
                                           : Action::receive;
        if (call.peer == null_peer && !exchanges) known.action = Action::nothing;
        if (known.action == Action::send && is_taken_by_probe(call)) known.action = Action::nothing;
        return known;
    }
    const std::optional<CollectiveName> what = collective_name(name);
    if (!what) return learn_access(call);
    known.posts = !what->blocking;
    if (call.comm < 0) return known;
    const ProfiledCommunicator& comm = profile_.communicators[static_cast<std::size_t>(call.comm)];
    const auto size = static_cast<std::uint32_t>(comm.members.size());
    // Nothing is moved, on all ranks alike.
    if (call.bytes == 0 && call.list.empty() && what->name != "barrier") {
        if (is_one_of(what->name,
                      {"alltoall", "allgather", "bcast", "allreduce", "reduce", "gather", "scatter"}))
            known.action = Action::nothing;
        if (!is_one_of(what->name, {"gatherv", "scatterv"})) return known;
    }
    known.on_host = !has_devices() || !routes_.collective_on_device(rank_, call, *what);
    std::optional<schedule::Schedule> schedule =
        build_collective(what->name, {comm.rank, size}, call, known.on_host);
    if (!schedule) return known;
    known.action = Action::collective;
    known.plan = std::make_unique<engine::Plan>(std::move(*schedule));
    for (const schedule::Slot& slot : known.plan->schedule().slots()) {
        if (slot.kind != schedule::SlotKind::user) continue;
        known.buffers.emplace_back(cluster_, slot.bytes);
        known.ranges.push_back(known.buffers.back().range());
    }
    return known;
}

Known Player::learn_access(const ProfiledCall& call) const {
    static const std::map<std::string, rma::OpKind> kinds{
        {"Put", rma::OpKind::put},
        {"Get", rma::OpKind::get},
        {"Accumulate", rma::OpKind::accumulate},
        {"Get_accumulate", rma::OpKind::get_accumulate},
        {"Fetch_and_op", rma::OpKind::get_accumulate},
        {"Compare_and_swap", rma::OpKind::compare_swap},
    };
    Known known;
    if (call.window < 0) return known;
    known.posts = is_one_of(call.name, {"Rput", "Rget", "Raccumulate", "Rget_accumulate"});
    std::string name = known.posts ? call.name.substr(1) : call.name;
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    if (const auto kind = kinds.find(name); kind != kinds.end()) {
        known.access = kind->second;
        known.action = call.peer < 0 || call.bytes == 0 ? Action::nothing : Action::access;
    } else if (is_one_of(call.name, {"Win_flush", "Win_flush_all", "Win_flush_local", "Win_flush_local_all",
                                     "Win_unlock", "Win_unlock_all"})) {
        known.action = Action::flush;
    } else if (call.name == "Win_fence") {
        known.action = Action::fence;
    } else if (is_one_of(call.name, {"Win_lock", "Win_lock_all", "Win_sync"})) {
        known.action = Action::nothing;  // locks that nobody holds
    }
    return known;
}

Operation Player::send(const ProfiledCall& call) {
    const memory::HostRange range = Buffer(cluster_, call.bytes).range();
    const auto peer = static_cast<std::uint32_t>(call.peer), tag = static_cast<std::uint32_t>(call.tag);
    const std::string name =
        fmt::format("rank {} of its communicator to take a message with tag {}", call.peer, call.tag);
    if (has_devices() && routes_.message_on_device(rank_, call, call.peer, call.tag, true)) {
        const MessageKey key = next_key(call, call.peer, call.tag, sent_);
        engine::Team& team = device_team(call.comm);
        return {[&team, range, peer, key](engine::Engine& engine, Completion* done) {
                    return engine.keyed_send(team, range, peer, key, done);
                },
                name};
    }
    engine::Team& team = library_team(call.comm);
    return {[&team, range, peer, tag](engine::Engine& engine, Completion* done) {
                return engine.send(team, range, peer, tag, done);
            },
            name, true};
}

Operation Player::receive(const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                          std::uint64_t bytes) {
    const memory::HostRange range = Buffer(cluster_, bytes).range();
    const std::uint32_t source = peer == any_peer ? matching::any : static_cast<std::uint32_t>(peer);
    const std::uint32_t wanted = tag == any_peer ? matching::any : static_cast<std::uint32_t>(tag);
    const std::string name =
        fmt::format("a message from {} with {}",
                    peer == any_peer ? "any rank" : fmt::format("rank {} of its communicator", peer),
                    tag == any_peer ? "any tag" : fmt::format("tag {}", tag));
    if (has_devices() && routes_.message_on_device(rank_, call, peer, tag, false)) {
        const MessageKey key = next_key(call, peer, tag, received_);
        engine::Team& team = device_team(call.comm);
        return {[&team, range, source, key](engine::Engine& engine, Completion* done) {
                    return engine.keyed_recv(team, range, source, key, nullptr, done);
                },
                name};
    }
    engine::Team& team = library_team(call.comm);
    return {[&team, range, source, wanted](engine::Engine& engine, Completion* done) {
                return engine.recv(team, range, source, wanted, nullptr, done);
            },
            name, true};
}

MessageKey Player::next_key(const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                            std::map<std::array<std::int32_t, 3>, std::uint64_t>& counts) const {
    return {(routes_.communicator(rank_, call.comm) << 32) | static_cast<std::uint32_t>(tag),
            counts[{call.comm, peer, tag}]++};
}

Operation Player::probe(const ProfiledCall& call) {
    const std::uint32_t source =
        call.peer == any_peer ? matching::any : static_cast<std::uint32_t>(call.peer);
    const std::uint32_t tag = call.tag == any_peer ? matching::any : static_cast<std::uint32_t>(call.tag);
    engine::Team& team = library_team(call.comm);
    return {[&team, source, tag](engine::Engine& engine, Completion* done) {
                static engine::MessageInfo info;
                return engine.probe(team, source, UINT32_MAX, tag, true, &info, done);
            },
            "a message that it probes for", true};
}

Operation Player::start(const ProfiledCall& call, const engine::Plan& plan,
                        std::span<const memory::HostRange> ranges, std::int32_t comm, bool on_host) {
    engine::Team& team = on_host ? library_team(comm) : device_team(comm);
    auto& sequences = on_host ? library_sequences_ : device_sequences_;
    const std::uint32_t sequence = sequences[static_cast<std::size_t>(comm)]++;
    return {[&team, &plan, ranges, sequence](engine::Engine& engine, Completion* done) {
                return engine.start(team, plan, sequence, ranges, done);
            },
            fmt::format("its part of {} {}", call.name, sequence), on_host};
}

Operation Player::access(const ProfiledCall& call, const Known& known) {
    const PlayedWindow& window = windows_[static_cast<std::size_t>(call.window)];
    engine::OneSidedCall access;
    access.kind = known.access;
    access.target = static_cast<std::uint32_t>(call.peer);
    access.bytes = call.bytes;
    if (rma::is_update(access.kind)) {
        const auto type = call.bytes % 8 == 0 ? schedule::DataType::float64 : schedule::DataType::uint8;
        access.type = static_cast<std::uint8_t>(type);
        access.reduction = static_cast<std::uint8_t>(schedule::Reduction::sum);
    }
    access.origin = Buffer(cluster_, access.operand_bytes()).range();
    access.result = Buffer(cluster_, access.result_bytes()).range();
    return {[window = window.window, access](engine::Engine& engine, Completion* done) {
                return engine.one_sided(*window, access, done);
            },
            fmt::format("{} at rank {} of its window", call.name, call.peer), window.on_host};
}

Operation Player::flush(const ProfiledCall& call) {
    const PlayedWindow& window = windows_[static_cast<std::size_t>(call.window)];
    const std::uint32_t target = call.peer < 0 ? engine::every_target : static_cast<std::uint32_t>(call.peer);
    return {[window = window.window, target](engine::Engine& engine, Completion* done) {
                return engine.flush_window(*window, target, done);
            },
            fmt::format("what {} waits for", call.name), window.on_host};
}

std::vector<Operation> Player::operations(const ProfiledCall& call, Known& known) {
    std::vector<Operation> found;
    switch (known.action) {
        case Action::send:
            found.push_back(send(call));
            break;
        case Action::receive:
            found.push_back(receive(call, call.peer, call.tag, call.bytes));
            break;
        case Action::exchange:
            if (call.peer != null_peer) found.push_back(send(call));
            if (call.from != null_peer)
                found.push_back(receive(call, call.from, call.from_tag, call.from_bytes));
            break;
        case Action::probe:
            found.push_back(probe(call));
            break;
        case Action::collective:
            found.push_back(start(call, *known.plan, known.ranges, call.comm, known.on_host));
            break;
        case Action::access:
            found.push_back(access(call, known));
            break;
        case Action::flush:
        case Action::fence:
            found.push_back(flush(call));
            break;
        default:
            break;
    }
    return found;
}

void Player::sweep(Rank& rank) {
    if (detached_.size() < 64) return;
    std::erase_if(detached_, [&rank](Request* request) {
        if (request->over()) rank.give_back(*request);
        return request->over();
    });
}

void Player::find_cancelled() {
    std::uint64_t posts = 0;
    Cursor cursor(profile_.sequence);
    while (const ProfiledNode* node = cursor.next()) {
        const ProfiledCall& call = profile_.calls[node->call];
        posts += known_[node->call].posts;
        if (call.name != "Cancel") continue;
        for (const std::uint64_t ago : call.list)
            if (ago != 0) cancelled_.insert(posts - ago);
    }
}

Program Player::play(Rank& rank) {
    const bool on_host = cluster_.shape().engine == EngineKind::host;
    const Operation test{[](engine::Engine&, Completion*) { return Status::ok; }, "a test", true};
    Cursor cursor(profile_.sequence);
    while (const ProfiledNode* node = cursor.next()) {
        const ProfiledCall& call = profile_.calls[node->call];
        Known& known = known_[node->call];
        const double count = static_cast<double>(node->count);
        const double compute = node->compute_s / count;
        // Tests in vain let a library go on; a device needs none.
        const std::uint64_t tests =
            on_host ? std::min<std::uint64_t>(100, (node->tests + node->count / 2) / node->count) : 0;
        for (std::uint64_t i = 0; i < tests; ++i) {
            co_await rank.compute(from_seconds(compute / static_cast<double>(tests + 1)));
            Request& request = co_await rank.post(test);
            detached_.push_back(&request);
            sweep(rank);
        }
        co_await rank.compute(from_seconds(compute / static_cast<double>(tests + 1)));
        const Time begin = rank.now();
        if (known.action == Action::unknown) {
            Unsupported& unsupported = result_.unsupported[call.name];
            ++unsupported.count;
            unsupported.inside_s += node->inside_s / count;
            co_await rank.pause(from_seconds(node->inside_s / count));
        } else if (known.action == Action::complete) {
            for (const std::uint64_t ago : call.list) {
                const auto found = outstanding_.find(posts_ - ago);
                if (found == outstanding_.end()) continue;
                Request& request = *found->second;
                outstanding_.erase(found);
                co_await rank.wait(request);
                rank.give_back(request);
            }
        } else if (known.action != Action::nothing && !(known.posts && cancelled_.contains(posts_))) {
            std::vector<Operation> wanted = operations(call, known);
            std::vector<Request*> requests;
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                Request& request = co_await rank.post(wanted[i]);
                if (leaves_at_once(call, known, i) || (known.action == Action::access && !known.posts)) {
                    detached_.push_back(&request);
                } else if (known.posts) {
                    outstanding_[posts_] = &request;
                } else {
                    requests.push_back(&request);
                }
            }
            for (Request* request : requests) {
                co_await rank.wait(*request);
                rank.give_back(*request);
            }
            if (known.action == Action::fence) {
                const PlayedWindow& window = windows_[static_cast<std::size_t>(call.window)];
                Request& met = co_await rank.post(
                    start(call, *window.barrier, {},
                          profile_.windows[static_cast<std::size_t>(call.window)].comm, window.on_host));
                co_await rank.wait(met);
                rank.give_back(met);
            }
            sweep(rank);
        }
        if (known.posts) ++posts_;
        ReplayedCall& replayed = result_.calls[rank_][node->call];
        ++replayed.count;
        replayed.inside_s += seconds_of(rank.now() - begin);
    }
    co_await rank.compute(from_seconds(profile_.compute_at_end_s));
    for (auto& [post, request] : outstanding_)
        detached_.push_back(request);
    for (Request* request : detached_)
        co_await rank.wait(*request);
    result_.time_s = std::max(result_.time_s, seconds_of(rank.now()));
}

// Gives each communicator of the program a team, under one number at all of its ranks.
void make_teams(const Routes& routes, const std::vector<RankProfile>& profiles,
                std::vector<std::unique_ptr<Player>>& players) {
    constexpr std::uint64_t first_id = 1000;
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank) {
        for (std::size_t comm = 0; comm < profiles[rank].communicators.size(); ++comm) {
            if (comm == 0)
                players[rank]->join_world(comm);
            else
                players[rank]->join(comm,
                                    first_id + routes.communicator(rank, static_cast<std::int32_t>(comm)));
        }
    }
}

// The n-th window of a communicator is the same one on all of its ranks. It is as large as the largest access
// that any rank makes, since the profile has no offsets.
void make_windows(const Routes& routes, const std::vector<RankProfile>& profiles,
                  std::vector<std::unique_ptr<Player>>& players) {
    std::uint64_t bytes = 8;
    for (const RankProfile& profile : profiles)
        for (const ProfiledCall& call : profile.calls)
            if (call.window >= 0) bytes = std::max(bytes, call.bytes);
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank) {
        std::map<std::uint64_t, std::uint64_t> seen;
        for (const ProfiledWindow& window : profiles[rank].windows) {
            const std::uint64_t comm = routes.communicator(rank, window.comm);
            players[rank]->expose(window, (comm << 16) | ++seen[comm], bytes);
        }
    }
}

}  // namespace

Replayed replay(Cluster& cluster, const std::vector<RankProfile>& profiles) {
    Replayed result;
    result.calls.resize(profiles.size());
    const Routes routes(cluster, profiles);
    std::vector<std::unique_ptr<Player>> players;
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank)
        players.push_back(std::make_unique<Player>(cluster, rank, profiles, routes, result));
    make_teams(routes, profiles, players);
    make_windows(routes, profiles, players);
    Job job(cluster);
    job.run([&players](Rank& rank) { return players[rank.number()]->play(rank); });
    return result;
}

}  // namespace offpath::sim
