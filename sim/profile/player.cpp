#include "sim/profile/player.h"

#include "collectives/selection.h"
#include "sim/profile/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace offpath::sim {
namespace {

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

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
    std::optional<SendOrder> of_host;
    if (known.on_host) of_host = send_order(cluster_.platform(), what->blocking);
    std::optional<schedule::Schedule> schedule =
        build_collective(what->name, {comm.rank, size}, call, of_host);
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

}  // namespace offpath::sim
