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

bool Player::is_taken_by_probe(const ProfiledCall& call) const {
    const std::vector<std::uint32_t>& members =
        profile_.communicators[static_cast<std::size_t>(call.comm)].members;
    const RankProfile& receiver = profiles_[members[static_cast<std::size_t>(call.peer)]];
    bool probes = false;
    for (const ProfiledCall& one : receiver.calls) {
        const bool exchanges = is_one_of(one.name, {"Sendrecv", "Sendrecv_replace"});
        const bool matched = is_one_of(one.name, {"Mrecv", "Imrecv"});
        const std::int32_t tag = exchanges ? one.from_tag : one.tag;
        if ((exchanges || (matched && one.comm >= 0) ||
             is_one_of(one.name, {"Recv", "Irecv", "Start of Irecv"})) &&
            (tag == call.tag || tag == any_peer))
            return false;
        probes |= matched;
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
    const bool posts_receive = is_one_of(name, {"Irecv", "Imrecv", "Start of Irecv"});
    const bool probes = is_one_of(name, {"Probe", "Iprobe", "Mprobe", "Improbe"});
    const bool exchanges = is_one_of(name, {"Sendrecv", "Sendrecv_replace"});
    known.posts = posts_send || posts_receive;
    if (sends || posts_send || posts_receive || probes || exchanges || is_one_of(name, {"Recv", "Mrecv"})) {
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
    known.synchronizes =
        what->blocking &&
        is_one_of(what->name, {"barrier", "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv",
                               "alltoallw", "reduce_scatter", "reduce_scatter_block"});
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
    std::optional<HostCall> of_host;
    if (known.on_host) of_host = host_call(cluster_.platform(), what->blocking);
    std::optional<schedule::Schedule> schedule =
        build_collective(what->name, {comm.rank, size}, call, of_host);
    if (!schedule) return known;
    known.action = Action::collective;
    known.plan = std::make_unique<engine::Plan>(std::move(*schedule));
    known.ranges = user_ranges(*known.plan);
    return known;
}

std::vector<memory::HostRange> Player::user_ranges(const engine::Plan& plan) const {
    std::vector<memory::HostRange> ranges;
    for (const schedule::Slot& slot : plan.schedule().slots())
        if (slot.kind == schedule::SlotKind::user) ranges.push_back(Buffer(cluster_, slot.bytes).range());
    return ranges;
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

double Player::compute_before(const ProfiledNode& node) {
    // If others compute for less, it makes no difference.
    constexpr double matters_s = 200e-6;
    // Those without computation are spread evenly, at the same places of all ranks. Their numbers differ a
    // little between ranks, so it is so many of eight.
    constexpr std::uint64_t of = 8;
    const double mean = node.compute_s / static_cast<double>(node.count);
    const std::uint64_t bare = (of * node.bare + node.count / 2) / node.count;
    if (bare == 0 || bare == of || mean < matters_s) return mean;
    const std::uint64_t at = passed_[&node]++ % of;
    const bool is_bare = (at + 1) * bare / of > at * bare / of;
    return is_bare ? 0 : mean * static_cast<double>(of) / static_cast<double>(of - bare);
}

Program Player::play(Rank& rank) {
    const bool on_host = cluster_.shape().engine == EngineKind::host;
    const Operation test{[](engine::Engine&, Completion*) { return Status::ok; }, "a test", true};
    Cursor cursor(profile_.sequence);
    while (const ProfiledNode* node = cursor.next()) {
        const ProfiledCall& call = profile_.calls[node->call];
        Known& known = known_[node->call];
        const double count = static_cast<double>(node->count);
        const double compute = stretch_ * compute_before(*node);
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
        if (call.window >= 0 && !call.name.starts_with("Win_unlock")) windows_.called(call, begin);
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
            const bool ends_epoch = known.action == Action::flush || known.action == Action::fence;
            bool met = known.synchronizes && windows_.meets(call.comm, call.name == "Barrier", begin);
            const bool has_met = met;
            std::vector<Operation> wanted;
            std::vector<Request*> requests;
            if (ends_epoch) {
                for (const Operation& bundle : windows_.bundles(call))
                    windows_.answers(call).push_back(&co_await rank.post(bundle));
                requests.swap(windows_.answers(call));
            }
            // A barrier in which windows were compared has nothing left to do.
            if (!(has_met && call.name == "Barrier")) wanted = operations(call, known, begin);
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                Request& request = co_await rank.post(wanted[i]);
                if (wanted[i].asked != nullptr) {
                    windows_.answers(call).push_back(&request);
                } else if (leaves_at_once(call, known, i) || is_header(known, i, wanted.size()) ||
                           (known.action == Action::access && !known.posts)) {
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
            if (ends_epoch) windows_.flushed(call, rank.now());
            const bool fences = known.action == Action::fence;
            if (fences) met = windows_.meets_in_fence(call, rank.now());
            std::vector<std::int32_t> changing;
            if (met) {
                const std::int32_t comm =
                    fences ? profile_.windows[static_cast<std::size_t>(call.window)].comm : call.comm;
                Request& compared = co_await rank.post(compare(call, comm));
                co_await rank.wait(compared);
                rank.give_back(compared);
                changing = windows_.choose(rank.now());
            } else if (fences) {
                changing = {call.window};
            }
            for (const std::int32_t window : changing) {
                // A change of ways takes two meetings, and any other fence is one.
                for (int times = met ? 2 : 1; times > 0; --times) {
                    Request& all_here = co_await rank.post(meet(call, window));
                    co_await rank.wait(all_here);
                    rank.give_back(all_here);
                }
            }
            sweep(rank);
        }
        if (call.window >= 0 && call.name.starts_with("Win_unlock")) windows_.called(call, rank.now());
        if (known.posts) ++posts_;
        ReplayedCall& replayed = result_.calls[rank_][node->call];
        ++replayed.count;
        replayed.inside_s += seconds_of(rank.now() - begin);
        windows_.was_inside(rank.now() - begin);
    }
    co_await rank.compute(from_seconds(stretch_ * profile_.compute_at_end_s));
    for (auto& [post, request] : outstanding_)
        detached_.push_back(request);
    for (Request* request : detached_)
        co_await rank.wait(*request);
    result_.time_s = std::max(result_.time_s, seconds_of(rank.now()));
}

}  // namespace offpath::sim
