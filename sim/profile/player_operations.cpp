// The operations of a call.
#include "sim/profile/collective_call.h"
#include "sim/profile/player.h"

#include <fmt/format.h>

namespace offpath::sim {
namespace {

constexpr std::uint64_t header_bytes = 64;

}  // namespace

Operation Player::send(const ProfiledCall& call) {
    const std::uint64_t number = sent_[{call.comm, call.peer, call.tag}]++;
    if (!has_devices() || !routes_.message_on_device(rank_, call, call.peer, call.tag, true, number))
        return send_by_library(call, call.bytes);
    const memory::HostRange range = Buffer(cluster_, call.bytes).range();
    const auto peer = static_cast<std::uint32_t>(call.peer);
    const MessageKey key = key_of(call, call.tag, number);
    engine::Team& team = device_team(call.comm);
    return {[&team, range, peer, key](engine::Engine& engine, Completion* done) {
                return engine.keyed_send(team, range, peer, key, done);
            },
            fmt::format("rank {} of its communicator to take a message with tag {}", call.peer, call.tag)};
}

Operation Player::send_by_library(const ProfiledCall& call, std::uint64_t bytes) {
    const memory::HostRange range = Buffer(cluster_, bytes).range();
    const auto peer = static_cast<std::uint32_t>(call.peer), tag = static_cast<std::uint32_t>(call.tag);
    const std::string name =
        fmt::format("rank {} of its communicator to take a message with tag {}", call.peer, call.tag);
    engine::Team& team = library_team(call.comm);
    return {[&team, range, peer, tag](engine::Engine& engine, Completion* done) {
                return engine.send(team, range, peer, tag, done);
            },
            name, true};
}

Operation Player::receive(const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                          std::uint64_t bytes) {
    const std::uint64_t number = received_[{call.comm, peer, tag}]++;
    if (!has_devices() || !routes_.message_on_device(rank_, call, peer, tag, false, number))
        return receive_by_library(call, peer, tag, bytes);
    const memory::HostRange range = Buffer(cluster_, bytes).range();
    const auto source = static_cast<std::uint32_t>(peer);
    const MessageKey key = key_of(call, tag, number);
    engine::Team& team = device_team(call.comm);
    return {[&team, range, source, key](engine::Engine& engine, Completion* done) {
                return engine.keyed_recv(team, range, source, key, nullptr, done);
            },
            fmt::format("a message from rank {} of its communicator with tag {}", peer, tag)};
}

Operation Player::receive_by_library(const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                                     std::uint64_t bytes) {
    const memory::HostRange range = Buffer(cluster_, bytes).range();
    const std::uint32_t source = peer == any_peer ? matching::any : static_cast<std::uint32_t>(peer);
    const std::uint32_t wanted = tag == any_peer ? matching::any : static_cast<std::uint32_t>(tag);
    const std::string name =
        fmt::format("a message from {} with {}",
                    peer == any_peer ? "any rank" : fmt::format("rank {} of its communicator", peer),
                    tag == any_peer ? "any tag" : fmt::format("tag {}", tag));
    engine::Team& team = library_team(call.comm);
    return {[&team, range, source, wanted](engine::Engine& engine, Completion* done) {
                return engine.recv(team, range, source, wanted, nullptr, done);
            },
            name, true};
}

bool Player::has_header(const ProfiledCall& call, bool sends) {
    const std::uint64_t number = (sends ? sent_ : received_)[{call.comm, call.peer, call.tag}];
    return has_devices() && routes_.message_on_device(rank_, call, call.peer, call.tag, sends, number) &&
           routes_.message_has_header(rank_, call, call.peer, call.tag, sends);
}

MessageKey Player::key_of(const ProfiledCall& call, std::int32_t tag, std::uint64_t number) const {
    return {(routes_.communicator(rank_, call.comm) << 32) | static_cast<std::uint32_t>(tag), number};
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

Operation Player::compare(const ProfiledCall& call, std::int32_t comm) {
    const std::uint64_t bytes = windows_.bytes_told();
    Comparison& comparison = comparisons_[{comm, bytes}];
    if (comparison.plan == nullptr) {
        const ProfiledCommunicator& its = profile_.communicators[static_cast<std::size_t>(comm)];
        ProfiledCall reduction;
        reduction.bytes = bytes;
        comparison.plan = std::make_unique<engine::Plan>(
            *build_collective("allreduce", {its.rank, static_cast<std::uint32_t>(its.members.size())},
                              reduction, host_call(cluster_.platform(), true)));
        comparison.ranges = user_ranges(*comparison.plan);
    }
    return start(call, *comparison.plan, comparison.ranges, comm, true);
}

Operation Player::meet(const ProfiledCall& call, std::int32_t window) {
    return start(call, windows_.barrier(window), {}, profile_.windows[static_cast<std::size_t>(window)].comm,
                 true);
}

std::vector<Operation> Player::operations(const ProfiledCall& call, Known& known, Time now) {
    std::vector<Operation> found;
    switch (known.action) {
        case Action::send:
            if (has_header(call, true)) found.push_back(send_by_library(call, header_bytes));
            found.push_back(send(call));
            break;
        case Action::receive:
            if (has_header(call, false))
                found.push_back(receive_by_library(call, call.peer, call.tag, header_bytes));
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
            if (auto operation = windows_.access(call, known.access, known.posts, now))
                found.push_back(std::move(*operation));
            break;
        case Action::flush:
        case Action::fence:
            found = windows_.flush(call);
            break;
        default:
            break;
    }
    return found;
}

}  // namespace offpath::sim
