// Player: one rank's part of a replay: its teams, its requests, and what each of its calls is. Used by
// replay.cpp only. Ownership: it borrows the cluster, the profiles and the result. Threads: one.
#pragma once

#include "engine/schedules/plan.h"
#include "sim/profile/played_windows.h"
#include "sim/profile/profile.h"
#include "sim/profile/replay.h"
#include "sim/profile/routes.h"
#include "sim/programs/rank.h"
#include "sim/programs/steps.h"

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace offpath::sim {

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
    std::vector<memory::HostRange> ranges;
    rma::OpKind access = rma::OpKind::put;
    bool synchronizes = false;  // no rank leaves the call before all have entered it
};

// A reduction that a program does not see.
struct Comparison {
    std::unique_ptr<engine::Plan> plan;
    std::vector<memory::HostRange> ranges;
};

// One rank's replay: its teams, its requests, and what each of its calls is.
class Player {
  public:
    Player(Cluster& cluster, std::uint32_t rank, const std::vector<RankProfile>& profiles,
           const Routes& routes, Meetings& meetings, double stretch, Replayed& result)
        : cluster_(cluster),
          rank_(rank),
          profile_(profiles[rank]),
          profiles_(profiles),
          routes_(routes),
          windows_(cluster, rank, profiles[rank], routes, meetings),
          stretch_(stretch),
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
    void expose(const ProfiledWindow& window, std::uint64_t id, std::uint64_t bytes, std::uint64_t team) {
        windows_.expose(window, id, bytes, team, library_team(window.comm),
                        has_devices() ? &device_team(window.comm) : nullptr);
    }

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
    std::vector<Operation> operations(const ProfiledCall& call, Known& known, Time now);
    std::vector<memory::HostRange> user_ranges(const engine::Plan& plan) const;
    Operation send(const ProfiledCall& call);
    Operation receive(const ProfiledCall& call, std::int32_t peer, std::int32_t tag, std::uint64_t bytes);
    // A message on the device that a matched probe finds by its header.
    bool has_header(const ProfiledCall& call, bool sends);
    Operation send_by_library(const ProfiledCall& call, std::uint64_t bytes);
    Operation receive_by_library(const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                                 std::uint64_t bytes);
    // Both ends count the messages of a channel.
    MessageKey key_of(const ProfiledCall& call, std::int32_t tag, std::uint64_t number) const;
    Operation probe(const ProfiledCall& call);
    Operation start(const ProfiledCall& call, const engine::Plan& plan,
                    std::span<const memory::HostRange> ranges, std::int32_t comm, bool on_host);
    // What a rank does at a meeting of windows (PlayedWindows): it compares, and then meets the others.
    Operation compare(const ProfiledCall& call, std::int32_t comm);
    Operation meet(const ProfiledCall& call, std::int32_t window);
    // Whether the program must wait for operation `index` of the call.
    static bool leaves_at_once(const ProfiledCall& call, const Known& known, std::size_t index) {
        return call.bytes <= library_eager_bytes && index == 0 &&
               (known.action == Action::send || (known.action == Action::exchange && call.peer != null_peer));
    }
    // The call is done with its payload.
    static bool is_header(const Known& known, std::size_t index, std::size_t operations) {
        return index == 0 && operations == 2 &&
               (known.action == Action::send || known.action == Action::receive);
    }
    // Computation before the call, the next time.
    double compute_before(const ProfiledNode& node);
    void sweep(Rank& rank);

    Cluster& cluster_;
    const std::uint32_t rank_;
    const RankProfile& profile_;
    const std::vector<RankProfile>& profiles_;  // of all ranks
    const Routes& routes_;
    PlayedWindows windows_;
    std::map<std::pair<std::int32_t, std::uint64_t>, Comparison> comparisons_;  // by communicator and bytes
    const double stretch_;                                                      // of computations
    Replayed& result_;
    std::vector<engine::Team*> library_teams_, device_teams_;  // by communicator
    std::vector<std::uint32_t> library_sequences_, device_sequences_;
    std::map<std::array<std::int32_t, 3>, std::uint64_t> sent_, received_;  // by communicator, peer, tag
    std::vector<Known> known_;
    std::unordered_map<const ProfiledNode*, std::uint64_t> passed_;  // how often, of nodes with `bare`
    std::unordered_map<std::uint64_t, Request*> outstanding_;        // by number of the post
    std::set<std::uint64_t> cancelled_;                              // likewise
    std::uint64_t posts_ = 0;
    std::vector<Request*> detached_;  // nobody waits for them before the end
};

}  // namespace offpath::sim
