// PlayedWindows: the windows of one rank in a replay, and the way that each of their operations takes: the
// ranks' libraries, the device, or the short way to the target's device. The rules are the product's
// (src/ways; frontends/mpi/rma).
//
// A window that spans nodes begins on the libraries' way. Where all of its ranks meet, they compare how long
// they were outside of calls, and may change to the device, or back. Meetings: what the ranks tell each
// other; one for all ranks of a replay.
//
// Ownership: PlayedWindows borrows the cluster, the profile, the routes and the meetings. Threads: one.
#pragma once

#include "engine/schedules/plan.h"
#include "sim/profile/profile.h"
#include "sim/profile/routes.h"
#include "sim/programs/rank.h"
#include "ways/epoch_trial.h"
#include "ways/short_way.h"
#include "ways/way_choice.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace offpath::sim {

class Meetings {
  public:
    // A rank says what it saw of a window, at the window's meeting of this number.
    void tell(std::uint64_t window, std::uint64_t number, const ways::Evidence& evidence, bool blocked);
    struct Told {
        ways::Evidence most;
        bool blocked = false;
        std::size_t taken = 0;  // by so many ranks
    };
    // What all of them said. Each of the window's `ranks` takes it once, when all have said it.
    Told take(std::uint64_t window, std::uint64_t number, std::size_t ranks);

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, Told> told_;
};

class PlayedWindows {
  public:
    PlayedWindows(Cluster& cluster, std::uint32_t rank, const RankProfile& profile, const Routes& routes,
                  Meetings& meetings)
        : cluster_(cluster), rank_(rank), profile_(profile), routes_(routes), meetings_(meetings) {}

    // Exposes the next window of the profile. `device`: null without devices. `team`: the number of both.
    void expose(const ProfiledWindow& window, std::uint64_t id, std::uint64_t bytes, std::uint64_t team,
                engine::Team& library, engine::Team* device);

    // A call about the window that moves nothing: a lock, an unlock, or its end.
    void called(const ProfiledCall& call, Time now);
    // Nothing: it waits, and travels with the flush.
    std::optional<Operation> access(const ProfiledCall& call, rma::OpKind kind, bool has_request, Time now);
    // Operations that the rank posts for a flush, in this order, after it has waited for what answers() has.
    std::vector<Operation> bundles(const ProfiledCall& call);
    std::vector<Operation> flush(const ProfiledCall& call);
    void flushed(const ProfiledCall& call, Time now);
    // The requests on the short way to the target of a flush.
    std::vector<Request*>& answers(const ProfiledCall& call);
    const engine::Plan& barrier(std::int32_t window) const {
        return *windows_[static_cast<std::size_t>(window)].barrier;
    }

    // The rank has been in a call for that long.
    void was_inside(Time time) { inside_ += time; }
    // Before a collective that no rank leaves before all have entered it. Whether the ranks compare, in a
    // reduction of bytes_told(), after which choose() has an answer. `is_barrier`: the reduction replaces it.
    bool meets(std::int32_t comm, bool is_barrier, Time now);
    std::uint64_t bytes_told() const;
    // The same for a fence of one window.
    bool meets_in_fence(const ProfiledCall& call, Time now);
    // Takes the ways that the meeting has chosen. Returns the windows that change theirs.
    std::vector<std::int32_t> choose(Time now);

  private:
    struct Target {
        std::uint64_t loose = 0, flushed = 0;  // operations without a request through the own proxy
        enum class Granted : std::uint8_t { no, asked, yes } granted = Granted::no;
        bool locked = false;
        bool host = false;                          // it may have operations by the library
        std::vector<engine::DirectAccess> bundled;  // for the short way
        std::uint32_t in_a_row = 0;
    };
    struct Window {
        engine::Window *library = nullptr, *device = nullptr;
        std::uint64_t id = 0, team = 0;
        std::int32_t comm = 0;
        ways::Way way = ways::Way::host;
        bool adapts = false, mapped = false, busy = false, live = false, locked_all = false;
        std::unique_ptr<engine::Plan> barrier;  // of its fences
        std::vector<Target> targets;
        std::vector<Request*> answers;
        ways::Batch batch;
        struct Epoch {
            ways::EpochTrial* trial = nullptr;
            ways::Way way = ways::Way::host;
            std::uint32_t operations = 0;
            Time began = 0;
        } epoch;
        ways::WayChoice choice;
        ways::WayPace fences;
        Time observed_since = 0, inside_before = 0;
        std::uint64_t meetings = 0;
    };
    const Window& window(const ProfiledCall& call) const {
        return windows_[static_cast<std::size_t>(call.window)];
    }
    Window& window(const ProfiledCall& call) { return windows_[static_cast<std::size_t>(call.window)]; }
    void observe(Window& window, Time now);
    void tell(Window& window, Time now);
    ways::Way way_of(Window& window, const ProfiledCall& call, rma::OpKind kind, Time now);
    ways::EpochTrial& trial_for(const Window& window, const ProfiledCall& call, rma::OpKind kind);
    bool is_near(const Window& window, std::int32_t target) const;
    // Null: the target has no short way.
    Worker* other_proxy(const Window& window, std::int32_t target) const;
    std::optional<Operation> shortly(Window& window, const ProfiledCall& call,
                                     const engine::OneSidedCall& access, bool& taken);
    template <typename Action>
    static void for_targets(Window& window, std::int32_t target, Action action);

    Cluster& cluster_;
    const std::uint32_t rank_;
    const RankProfile& profile_;
    const Routes& routes_;
    Meetings& meetings_;
    std::vector<Window> windows_;
    std::map<std::int32_t, ways::WayPace> paces_;  // by communicator
    std::vector<Window*> meeting_;
    Time inside_ = 0;
    // By kind of access, binary magnitude of the bytes, and targets on this node or elsewhere.
    static constexpr std::size_t magnitudes = 48;
    std::array<ways::EpochTrial, 4 * magnitudes> trials_;
};

}  // namespace offpath::sim
