#include "held_calls.h"

#include <fmt/format.h>

#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "after_loss.h"
#include "base/clock.h"
#include "base/patience.h"
#include "communicators/communicators.h"
#include "runtime/backoff.h"
#include "runtime/losses.h"
#include "runtime/parts.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

struct HeldCall {
    OffloadedRequest* operation;
    std::uint64_t number;
    StartOnHost start;
    PrepareSecondRun prepare;
    std::uint64_t since_ns;
};
// The calls that one departure decides on, in their order.
struct Queue {
    Team* team;  // held
    std::deque<HeldCall> calls;
};

constexpr std::uint64_t no_limit_ns = std::numeric_limits<std::uint64_t>::max();
// Before a collective of the host's: for the decision, and then for other ranks to commit.
constexpr std::uint64_t settle_ns = 500'000'000;
constexpr std::uint64_t commit_ns = 2'000'000'000;

std::mutex held_calls_mutex;  // guards the map and the queues
std::map<const Departure*, Queue> queues;
// One thread at a time starts calls. Meanwhile the host's MPI may call an error handler, which may get here
// again.
std::atomic_flag starting = ATOMIC_FLAG_INIT;

void end(OffloadedRequest& operation, bool lost) {
    operation.lost = lost;
    operation.held.store(false, std::memory_order_release);  // read by state_of
}

void start_on_host(HeldCall& call) {
    OffloadedRequest& operation = *call.operation;
    MPI_Request started = MPI_REQUEST_NULL;
    operation.number = 0;
    operation.host_failed = call.start(&started) != MPI_SUCCESS;
    operation.host_parts.push_back(started);
    end(operation, false);
}

// By messages of the front end.
void run(HeldCall& call, Passage passage) {
    OffloadedRequest& operation = *call.operation;
    operation.number = call.number;
    has_no_device(operation);
    if (passage == Passage::host) goes_to_host(operation);
    const bool prepared = call.prepare(operation) == OFFPATH_OK;
    if (!prepared) operation.departure->give_up(call.number);
    end(operation, !prepared);
}

HeldCall* first_of(Queue& queue) {
    const std::lock_guard lock(held_calls_mutex);
    return queue.calls.empty() ? nullptr : &queue.calls.front();
}

// Only the thread that starts calls removes calls. A held call keeps its communicator, as a persistent
// message does. A persistent collective needs none.
void start_calls_of(Queue& queue, std::uint64_t patience_ns) {
    Team& team = *queue.team;
    while (HeldCall* call = first_of(queue)) {
        Departure& departure = *call->operation->departure;
        const bool persistent = call->operation->persistent;
        Passage passage = call->number == 0 ? Passage::host
                                            : departure.passage_of(call->number, repair_of(*call->operation));
        if (passage == Passage::undecided) {
            if (now_ns() - call->since_ns < patience_ns || !departure.give_up(call->number)) return;
            passage = Passage::lost;
        }
        if (passage == Passage::lost) {
            end(*call->operation, true);
        } else if (passage == Passage::again || persistent) {
            run(*call, passage);
        } else {
            start_on_host(*call);
        }
        HeldCall over;  // outlives the lock, because its end calls MPI
        {
            const std::lock_guard lock(held_calls_mutex);
            over = std::move(queue.calls.front());
            queue.calls.pop_front();
        }
        if (persistent) continue;
        team.held_calls.fetch_sub(1, std::memory_order_release);  // read by pass_settled
        end_message(team);
    }
}

template <typename Done>
void poll_until(Done done, std::uint64_t limit_ns) {
    for (Backoff backoff; !done() && backoff.waited_ns() < limit_ns; backoff.pause()) {
        poll();
        progress_parts();
    }
}

// All ranks of the team call this at the same place in the team's collectives.
void leave_device(Team& team) {
    if (team.reason != HostReason::none) return;
    team.reason = HostReason::lost;
    if (team.rank == 0)
        warn(
            Code::device_lost,
            fmt::format(
                "a device was lost: collectives of a communicator of {} ranks use the host's MPI from now on",
                team.size));
}

}  // namespace

Passage pass(Team& team, Op op, std::uint64_t* number) {
    *number = 0;
    if (team.reason == HostReason::none) {
        if (team.comm == MPI_COMM_NULL) return Passage::device;
        poll_letters();
        if (met_loss(team)) team.departure->report();
        *number = team.departure->next();
        const Passage passage = team.departure->passage_of(*number, repair_of(op));
        if (passage != Passage::host) return passage;
        leave_device(team);
    }
    return must_hold(team) ? Passage::undecided : Passage::host;
}

Passage pass_persistent(const Team& team, Departure& departure, Op op, std::uint64_t* number) {
    poll_letters();
    if (met_loss(team) || team.departure->has_reported()) departure.report();
    *number = departure.next();
    return departure.passage_of(*number, repair_of(op));
}

Passage pass_settled(Team& team, Op op, std::uint64_t* number) {
    Passage passage = pass(team, op, number);
    if (passage != Passage::undecided) return passage;
    poll_until([&] { return team.held_calls.load(std::memory_order_acquire) == 0; }, no_limit_ns);
    if (*number == 0) return Passage::host;
    const auto find = [&] {
        passage = team.departure->passage_of(*number, repair_of(op));
        return passage != Passage::undecided;
    };
    poll_until(find, lost_after_ns());
    if (passage == Passage::undecided) {
        if (team.departure->give_up(*number)) return Passage::lost;
        poll_until(find, no_limit_ns);
    }
    if (passage == Passage::host) leave_device(team);
    return passage;
}

bool must_hold(const Team& team) {
    return team.held_calls.load(std::memory_order_acquire) != 0;
}

int hold_back(OffloadedRequest& operation, std::uint64_t number, StartOnHost start, PrepareSecondRun prepare,
              MPI_Request* request) {
    Team& team = *operation.team;
    operation.number = number;
    operation.held.store(true, std::memory_order_relaxed);
    const int result = publish(operation, OFFPATH_OK, request);
    if (!operation.persistent) begin_message(team);
    const std::lock_guard lock(held_calls_mutex);
    const auto [queue, is_new] = queues.try_emplace(operation.departure, Queue{&team, {}});
    if (is_new) retain(team);
    queue->second.calls.push_back({&operation, number, std::move(start), std::move(prepare), now_ns()});
    if (!operation.persistent) team.held_calls.fetch_add(1, std::memory_order_relaxed);
    teams_holding.store(static_cast<std::uint32_t>(queues.size()), std::memory_order_relaxed);
    return result;
}

namespace {

// Gives up the calls that have been held for `patience_ns`.
void start_or_give_up(std::uint64_t patience_ns) {
    if (teams_holding.load(std::memory_order_relaxed) == 0 ||
        starting.test_and_set(std::memory_order_acquire))
        return;
    std::vector<std::pair<const Departure*, Queue*>> present;
    {
        const std::lock_guard lock(held_calls_mutex);
        for (auto& [departure, queue] : queues)
            present.emplace_back(departure, &queue);
    }
    for (const auto& [departure, queue] : present) {
        Team* const team = queue->team;
        start_calls_of(*queue, patience_ns);
        {
            const std::lock_guard lock(held_calls_mutex);
            if (!queue->calls.empty()) continue;
            queues.erase(departure);
            teams_holding.store(static_cast<std::uint32_t>(queues.size()), std::memory_order_relaxed);
        }
        release(*team);
    }
    starting.clear(std::memory_order_release);
}

}  // namespace

void start_held_calls() {
    if (teams_holding.load(std::memory_order_relaxed) != 0) start_or_give_up(lost_after_ns());
}

void before_collective(Team& team) {
    if (!any_loss.load(std::memory_order_relaxed)) return;
    const auto none_left = [] {
        return teams_holding.load(std::memory_order_relaxed) == 0 && !any_kept_back_for_now();
    };
    poll_until([&] { return none_left() && (team.departure == nullptr || !team.departure->is_undecided()); },
               settle_ns);
    // What is not given up now was committed by this rank, and waits for others to commit. Second runs go on:
    // their ranks have all agreed on them, so none of them sits in the host's MPI.
    give_up_kept_back();
    poll_until([] { return !any_kept_back_for_now(); }, no_limit_ns);
    const auto none_held = [&] {
        start_or_give_up(0);
        return none_left();
    };
    poll_until(none_held, commit_ns);
}

void before_collective(MPI_Comm comm) {
    poll_letters();
    if (any_loss.load(std::memory_order_relaxed) && active() && comm != MPI_COMM_NULL)
        before_collective(find_team(comm));
}

void answer_until_all_end() {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Ibarrier(runtime().service, &request);
    for (Backoff backoff;; backoff.pause()) {
        int over = 0;
        if (PMPI_Test(&request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || over != 0) return;
        poll();
        progress_parts();
    }
}

}  // namespace offpath::mpi
