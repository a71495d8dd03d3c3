#include "sim/profile/routes.h"

#include "sim/profile/cursor.h"

#include <algorithm>
#include <numeric>

namespace offpath::sim {
namespace {

// The switch-overs of docs/mpi.md and docs/point-to-point.md.
constexpr std::uint64_t block_bytes = 64 << 10, whole_bytes = 256 << 10, message_bytes = 128 << 10;
// A program that computes for less between post and completion only waits.
constexpr double least_overlap_s = 10e-6;

bool is_among(const std::string& name, std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool sends_message(const std::string& name) {
    return is_among(name, {"Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend",
                           "Start of Isend", "Sendrecv", "Sendrecv_replace"});
}

bool by_pairs(const std::string& name) {
    return is_among(name, {"alltoallv", "alltoallw", "gatherv", "scatterv"});
}

}  // namespace

Routes::Routes(const Cluster& cluster, const std::vector<RankProfile>& profiles)
    : cluster_(cluster), profiles_(profiles) {
    number_communicators();
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank) {
        for (const ProfiledCall& call : profiles[rank].calls) {
            if (call.comm < 0) continue;
            learn_message(rank, call);
            const auto what = collective_name(call.name);
            if (!what || !by_pairs(what->name)) continue;
            Blocks& blocks = blocks_[{communicator(rank, call.comm), what->name}];
            blocks.bytes += std::accumulate(call.list.begin(), call.list.end(), call.bytes);
            blocks.count += call.list.empty() ? 1 : call.list.size();
        }
    }
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank)
        find_large(rank);
}

void Routes::number_communicators() {
    std::map<std::pair<std::vector<std::uint32_t>, std::uint32_t>, std::uint64_t> numbers;
    for (const RankProfile& profile : profiles_) {
        communicators_.emplace_back();
        for (const ProfiledCommunicator& comm : profile.communicators)
            communicators_.back().push_back(
                numbers.try_emplace({comm.members, comm.occurrence}, numbers.size()).first->second);
    }
}

std::uint64_t Routes::communicator(std::uint32_t rank, std::int32_t comm) const {
    return communicators_[rank][static_cast<std::size_t>(comm)];
}

std::uint32_t Routes::world_rank(std::uint32_t rank, std::int32_t comm, std::int32_t peer) const {
    return profiles_[rank]
        .communicators[static_cast<std::size_t>(comm)]
        .members[static_cast<std::size_t>(peer)];
}

void Routes::find_large(std::uint32_t rank) {
    const RankProfile& profile = profiles_[rank];
    std::vector<Messages*> mixed(profile.calls.size());  // the channel of each call that sends
    bool any = false;
    for (std::size_t i = 0; i < profile.calls.size(); ++i) {
        const ProfiledCall& call = profile.calls[i];
        if (call.comm < 0 || call.peer < 0 || !sends_message(call.name)) continue;
        const auto found = channels_.find(
            {communicator(rank, call.comm), call.tag, rank, world_rank(rank, call.comm, call.peer)});
        if (found == channels_.end() || !found->second.is_mixed()) continue;
        mixed[i] = &found->second;
        any = true;
    }
    if (!any) return;
    Cursor cursor(profile.sequence);
    while (const ProfiledNode* node = cursor.next())
        if (mixed[node->call] != nullptr)
            mixed[node->call]->large.push_back(profile.calls[node->call].bytes >= message_bytes);
}

void Routes::learn_message(std::uint32_t rank, const ProfiledCall& call) {
    const std::string& name = call.name;
    const std::uint64_t comm = communicator(rank, call.comm);
    const bool exchanges = is_among(name, {"Sendrecv", "Sendrecv_replace"});
    const bool matched = is_among(name, {"Mrecv", "Imrecv"});
    const bool receives = matched || is_among(name, {"Recv", "Irecv", "Start of Irecv"});
    const bool overlaps =
        call.windows > 0 && call.window_compute_s > least_overlap_s * static_cast<double>(call.windows);
    if (is_among(name, {"Probe", "Iprobe"})) matched_by_host_.insert({comm, rank});
    if (sends_message(name) && call.peer >= 0) {
        Messages& messages = channels_[{comm, call.tag, rank, world_rank(rank, call.comm, call.peer)}];
        messages.least_bytes = std::min(messages.least_bytes, call.bytes);
        messages.most_bytes = std::max(messages.most_bytes, call.bytes);
        messages.overlaps |= overlaps;
    }
    if (!receives && !exchanges) return;
    const std::int32_t from = exchanges ? call.from : call.peer, tag = exchanges ? call.from_tag : call.tag;
    if (from == any_peer || tag == any_peer) matched_by_host_.insert({comm, rank});
    if (from < 0) return;
    Messages& messages = channels_[{comm, tag, world_rank(rank, call.comm, from), rank}];
    messages.received = true;
    messages.probed |= matched;
    messages.overlaps |= overlaps;
}

bool Routes::message_on_device(std::uint32_t rank, const ProfiledCall& call, std::int32_t peer,
                               std::int32_t tag, bool sends, std::uint64_t number) const {
    if (peer < 0 || tag < 0) return false;
    const std::uint32_t other = world_rank(rank, call.comm, peer);
    const std::uint32_t sender = sends ? rank : other, receiver = sends ? other : rank;
    const std::uint64_t comm = communicator(rank, call.comm);
    const auto found = channels_.find({comm, tag, sender, receiver});
    if (found == channels_.end() || matched_by_host_.contains({comm, receiver})) return false;
    const Messages& messages = found->second;
    if (cluster_.node_of(sender) == cluster_.node_of(receiver) || !messages.received || !messages.overlaps)
        return false;
    if (messages.is_mixed()) return number < messages.large.size() && messages.large[number];
    return messages.least_bytes != UINT64_MAX && messages.least_bytes >= message_bytes;
}

bool Routes::Messages::is_mixed() const {
    return least_bytes < message_bytes && most_bytes >= message_bytes;
}

bool Routes::message_has_header(std::uint32_t rank, const ProfiledCall& call, std::int32_t peer,
                                std::int32_t tag, bool sends) const {
    const std::uint32_t other = world_rank(rank, call.comm, peer);
    const auto found =
        channels_.find({communicator(rank, call.comm), tag, sends ? rank : other, sends ? other : rank});
    return found != channels_.end() && found->second.probed;
}

bool Routes::collective_on_device(std::uint32_t rank, const ProfiledCall& call,
                                  const CollectiveName& what) const {
    if (what.blocking || what.name == "barrier") return false;
    if (by_pairs(what.name)) {
        const Blocks& blocks = blocks_.at({communicator(rank, call.comm), what.name});
        return blocks.bytes >= block_bytes * blocks.count;
    }
    const std::uint64_t size =
        profiles_[rank].communicators[static_cast<std::size_t>(call.comm)].members.size();
    if (what.name == "alltoall") return call.bytes >= block_bytes;
    if (is_among(what.name, {"allgatherv", "reduce_scatter"}))
        return std::accumulate(call.list.begin(), call.list.end(), std::uint64_t{0}) >= whole_bytes;
    const bool blocks = is_among(what.name, {"allgather", "gather", "scatter", "reduce_scatter_block"});
    return call.bytes * (blocks ? size : 1) >= whole_bytes;
}

bool Routes::window_on_device(std::uint32_t rank, std::int32_t comm) const {
    const auto& members = profiles_[rank].communicators[static_cast<std::size_t>(comm)].members;
    return std::any_of(members.begin(), members.end(), [&](std::uint32_t member) {
        return cluster_.node_of(member) != cluster_.node_of(members.front());
    });
}

}  // namespace offpath::sim
