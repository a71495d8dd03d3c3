#include "sim/profile/replay.h"

#include "collectives/selection.h"
#include "engine/schedules/plan.h"
#include "sim/programs/rank.h"
#include "sim/programs/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace offpath::sim {
namespace {

using collectives::Reducing;
using collectives::TeamShape;

// The calls of a sequence in order, loops repeated.
class Cursor {
  public:
    explicit Cursor(const std::vector<ProfiledNode>& nodes) { frames_.push_back({&nodes, 0, 1}); }
    const ProfiledNode* next() {
        while (!frames_.empty()) {
            Frame& frame = frames_.back();
            if (frame.at == frame.nodes->size()) {
                frame.at = 0;
                if (--frame.left == 0) frames_.pop_back();
                continue;
            }
            const ProfiledNode& node = (*frame.nodes)[frame.at++];
            if (!node.loop) return &node;
            if (node.times > 0) frames_.push_back({&node.body, 0, node.times});
        }
        return nullptr;
    }

  private:
    struct Frame {
        const std::vector<ProfiledNode>* nodes;
        std::size_t at;
        std::uint64_t left;
    };
    std::vector<Frame> frames_;
};

std::vector<std::uint64_t> offsets_of(std::span<const std::uint64_t> sizes) {
    std::vector<std::uint64_t> offsets(sizes.size());
    std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), std::uint64_t{0});
    return offsets;
}

// The schedule of a collective, or nothing if the simulator does not know it. `name` is that of the blocking
// form, in small letters.
std::optional<schedule::Schedule> build(const std::string& name, TeamShape team, const ProfiledCall& call) {
    const std::uint64_t bytes = call.bytes;
    const auto root = static_cast<std::uint32_t>(std::max(0, call.peer));
    const Reducing sums{bytes % 8 == 0 ? schedule::DataType::float64 : schedule::DataType::uint8,
                        schedule::Reduction::sum};
    const std::span<const std::uint64_t> list(call.list);
    if (name == "barrier") return collectives::barrier(team);
    if (name == "alltoallv") {
        if (list.size() != 2 * std::size_t{team.size}) return std::nullopt;
        const auto sent = list.first(team.size), received = list.last(team.size);
        const auto from = offsets_of(sent), to = offsets_of(received);
        return collectives::alltoallv(team, {sent, from, received, to});
    }
    if (name == "allgatherv" || name == "reduce_scatter") {
        if (list.size() != team.size) return std::nullopt;
        if (name == "allgatherv") return collectives::allgatherv(team, list, offsets_of(list), false);
        const bool doubles = std::ranges::all_of(list, [](std::uint64_t size) { return size % 8 == 0; });
        return collectives::reduce_scatter(
            team, list,
            {doubles ? schedule::DataType::float64 : schedule::DataType::uint8, schedule::Reduction::sum});
    }
    if (bytes == 0) return std::nullopt;
    const std::vector<std::uint64_t> blocks(team.size, bytes);
    if (name == "alltoall") return collectives::alltoall(team, bytes);
    if (name == "allgather") return collectives::allgatherv(team, blocks, offsets_of(blocks), false);
    if (name == "bcast") return collectives::bcast(team, root, bytes);
    if (name == "allreduce") return collectives::allreduce(team, bytes, sums, false);
    if (name == "reduce") return collectives::reduce(team, root, bytes, sums, false);
    if (name == "reduce_scatter_block") return collectives::reduce_scatter(team, blocks, sums);
    if (name == "gather") return collectives::gather(team, root, bytes, false);
    if (name == "scatter") return collectives::scatter(team, root, bytes, false);
    if (name == "scan") return collectives::scan(team, bytes, sums, false, false);
    if (name == "exscan") return collectives::scan(team, bytes, sums, false, true);
    return std::nullopt;
}

enum class Action : std::uint8_t { unknown, nothing, send, receive, exchange, probe, collective, complete };

struct Known {
    Action action = Action::unknown;
    bool posts = false;  // the call leaves a request
    std::unique_ptr<engine::Plan> plan;
    std::vector<Buffer> buffers;
    std::vector<memory::HostRange> ranges;
};

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// One rank's replay: its teams, its requests, and what each of its calls is.
class Player {
  public:
    Player(Cluster& cluster, std::uint32_t rank, const std::vector<RankProfile>& profiles, Replayed& result)
        : cluster_(cluster), rank_(rank), profile_(profiles[rank]), profiles_(profiles), result_(result) {
        const RankProfile& profile = profile_;
        teams_.resize(profile.communicators.size());
        sequences_.resize(profile.communicators.size());
        result.calls[rank].resize(profile.calls.size());
        for (const ProfiledCall& call : profile.calls)
            known_.push_back(learn(call));
    }
    void join(std::size_t comm, std::uint64_t id, std::span<const engine::Member> members) {
        const Status status = cluster_.worker_of(rank_).engine().create_team(
            cluster_.session_of(rank_), id, profile_.communicators[comm].rank, members, &teams_[comm]);
        if (is_error(status)) throw std::runtime_error(std::string("create_team: ") + to_string(status));
    }
    void join_world(std::size_t comm) { teams_[comm] = &cluster_.team_of(rank_); }

    Program play(Rank& rank);

  private:
    Known learn(const ProfiledCall& call);
    // Whether the receiver takes the message by a matched probe, which is not replayed. The message would
    // wait for ever, so it is not replayed either.
    bool is_taken_by_probe(const ProfiledCall& call) const;
    std::vector<Operation> operations(const ProfiledCall& call, Known& known);
    Operation send(engine::Team& team, std::int32_t peer, std::int32_t tag, std::uint64_t bytes);
    Operation receive(engine::Team& team, std::int32_t peer, std::int32_t tag, std::uint64_t bytes);
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
    Replayed& result_;
    std::vector<engine::Team*> teams_;
    std::vector<std::uint32_t> sequences_;
    std::vector<Known> known_;
    std::unordered_map<std::uint64_t, Request*> outstanding_;  // by number of the post
    std::uint64_t posts_ = 0;
    std::vector<Request*> detached_;  // nobody waits for them before the end
};

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
    if (is_one_of(name,
                  {"Send_init", "Bsend_init", "Ssend_init", "Rsend_init", "Recv_init", "Request_free"})) {
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
    std::string blocking = name;
    std::transform(blocking.begin(), blocking.end(), blocking.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    static const char* const collectives[] = {"barrier",
                                              "alltoall",
                                              "alltoallv",
                                              "alltoallw",
                                              "allgather",
                                              "allgatherv",
                                              "bcast",
                                              "allreduce",
                                              "reduce",
                                              "reduce_scatter",
                                              "reduce_scatter_block",
                                              "gather",
                                              "gatherv",
                                              "scatter",
                                              "scatterv",
                                              "scan",
                                              "exscan",
                                              "neighbor_allgather",
                                              "neighbor_allgatherv",
                                              "neighbor_alltoall",
                                              "neighbor_alltoallv",
                                              "neighbor_alltoallw"};
    const auto is_collective = [](const std::string& text) {
        return std::find(std::begin(collectives), std::end(collectives), text) != std::end(collectives);
    };
    if (!is_collective(blocking)) {
        if (blocking.empty() || blocking[0] != 'i' || !is_collective(blocking.substr(1))) return known;
        blocking.erase(0, 1);
        known.posts = true;
    }
    if (call.comm < 0) return known;
    const ProfiledCommunicator& comm = profile_.communicators[static_cast<std::size_t>(call.comm)];
    const auto size = static_cast<std::uint32_t>(comm.members.size());
    // Nothing is moved, on all ranks alike.
    if (call.bytes == 0 && call.list.empty() && blocking != "barrier") {
        if (is_one_of(blocking,
                      {"alltoall", "allgather", "bcast", "allreduce", "reduce", "gather", "scatter"}))
            known.action = Action::nothing;
        return known;
    }
    std::optional<schedule::Schedule> schedule = build(blocking, {comm.rank, size}, call);
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

Operation Player::send(engine::Team& team, std::int32_t peer, std::int32_t tag, std::uint64_t bytes) {
    const memory::HostRange range = Buffer(cluster_, bytes).range();
    return {[&team, range, peer, tag](engine::Engine& engine, Completion* done) {
                return engine.send(team, range, static_cast<std::uint32_t>(peer),
                                   static_cast<std::uint32_t>(tag), done);
            },
            fmt::format("rank {} of its communicator to take a message with tag {}", peer, tag)};
}

Operation Player::receive(engine::Team& team, std::int32_t peer, std::int32_t tag, std::uint64_t bytes) {
    const memory::HostRange range = Buffer(cluster_, bytes).range();
    const std::uint32_t source = peer == any_peer ? matching::any : static_cast<std::uint32_t>(peer);
    const std::uint32_t wanted = tag == any_peer ? matching::any : static_cast<std::uint32_t>(tag);
    return {[&team, range, source, wanted](engine::Engine& engine, Completion* done) {
                return engine.recv(team, range, source, wanted, nullptr, done);
            },
            fmt::format("a message from {} with {}",
                        peer == any_peer ? "any rank" : fmt::format("rank {} of its communicator", peer),
                        tag == any_peer ? "any tag" : fmt::format("tag {}", tag))};
}

std::vector<Operation> Player::operations(const ProfiledCall& call, Known& known) {
    engine::Team& team = *teams_[static_cast<std::size_t>(call.comm)];
    std::vector<Operation> found;
    switch (known.action) {
        case Action::send:
            found.push_back(send(team, call.peer, call.tag, call.bytes));
            break;
        case Action::receive:
            found.push_back(receive(team, call.peer, call.tag, call.bytes));
            break;
        case Action::exchange:
            if (call.peer != null_peer) found.push_back(send(team, call.peer, call.tag, call.bytes));
            if (call.from != null_peer)
                found.push_back(receive(team, call.from, call.from_tag, call.from_bytes));
            break;
        case Action::probe: {
            const std::uint32_t source =
                call.peer == any_peer ? matching::any : static_cast<std::uint32_t>(call.peer);
            const std::uint32_t tag =
                call.tag == any_peer ? matching::any : static_cast<std::uint32_t>(call.tag);
            found.push_back({[&team, source, tag](engine::Engine& engine, Completion* done) {
                                 static engine::MessageInfo info;
                                 return engine.probe(team, source, UINT32_MAX, tag, true, &info, done);
                             },
                             "a message that it probes for"});
            break;
        }
        case Action::collective: {
            const std::uint32_t sequence = sequences_[static_cast<std::size_t>(call.comm)]++;
            found.push_back({[&team, &known, sequence](engine::Engine& engine, Completion* done) {
                                 return engine.start(team, *known.plan, sequence, known.ranges, done);
                             },
                             fmt::format("its part of {} {}", call.name, sequence)});
            break;
        }
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

Program Player::play(Rank& rank) {
    const bool on_host = cluster_.shape().engine == EngineKind::host;
    const Operation test{[](engine::Engine&, Completion*) { return Status::ok; }, "a test"};
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
        } else if (known.action != Action::nothing) {
            std::vector<Operation> wanted = operations(call, known);
            std::vector<Request*> requests;
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                Request& request = co_await rank.post(wanted[i]);
                if (leaves_at_once(call, known, i)) {
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
void make_teams(Cluster& cluster, const std::vector<RankProfile>& profiles,
                std::vector<std::unique_ptr<Player>>& players) {
    std::map<std::pair<std::vector<std::uint32_t>, std::uint32_t>, std::uint64_t> ids;
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank) {
        for (std::size_t comm = 0; comm < profiles[rank].communicators.size(); ++comm) {
            const ProfiledCommunicator& its = profiles[rank].communicators[comm];
            if (comm == 0) {
                players[rank]->join_world(comm);
                continue;
            }
            const auto [entry, added] = ids.try_emplace({its.members, its.occurrence}, ids.size() + 1000);
            std::vector<engine::Member> members;
            for (const std::uint32_t member : its.members)
                members.push_back({cluster.worker_of(member).number() + 1, member});
            players[rank]->join(comm, entry->second, members);
        }
    }
}

}  // namespace

Replayed replay(Cluster& cluster, const std::vector<RankProfile>& profiles) {
    Replayed result;
    result.calls.resize(profiles.size());
    std::vector<std::unique_ptr<Player>> players;
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank)
        players.push_back(std::make_unique<Player>(cluster, rank, profiles, result));
    make_teams(cluster, profiles, players);
    Job job(cluster);
    job.run([&players](Rank& rank) { return players[rank.number()]->play(rank); });
    return result;
}

}  // namespace offpath::sim
