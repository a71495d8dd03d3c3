#include "held_calls.h"

#include <fmt/format.h>

#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

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
};
using Queue = std::deque<HeldCall>;

std::mutex held_calls_mutex;  // guards the map and the queues
std::map<Team*, Queue> queues;
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
    operation.host_failed = call.start(&started) != MPI_SUCCESS;
    operation.host_parts.push_back(started);
    end(operation, false);
}

HeldCall* first_of(Queue& queue) {
    const std::lock_guard lock(held_calls_mutex);
    return queue.empty() ? nullptr : &queue.front();
}

// Only the thread that starts calls removes calls. A held call keeps its communicator, as a persistent
// message does.
void start_calls_of(Team& team, Queue& queue) {
    while (HeldCall* call = first_of(queue)) {
        if (team.departure->is_undecided()) return;
        if (call->number != 0 && team.departure->passage_of(call->number) == Passage::lost) {
            end(*call->operation, true);
        } else {
            start_on_host(*call);
        }
        HeldCall over;  // outlives the lock, because its end calls MPI
        {
            const std::lock_guard lock(held_calls_mutex);
            over = std::move(queue.front());
            queue.pop_front();
        }
        team.held_calls.fetch_sub(1, std::memory_order_release);  // read by settle_within
        end_message(team);
    }
}

void settle_within(Team& team, std::uint64_t limit_ns) {
    if (team.departure == nullptr) return;
    const auto settled = [&] {
        return !team.departure->is_undecided() && team.held_calls.load(std::memory_order_acquire) == 0;
    };
    for (Backoff backoff; !settled() && backoff.waited_ns() < limit_ns; backoff.pause()) {
        poll();
        progress_parts();
    }
}

// All ranks of the team call this at the same place in the team's collectives.
void leave_device(Team& team) {
    if (team.reason != HostReason::none) return;
    team.reason = HostReason::no_team;
    if (team.rank == 0)
        say(fmt::format(
            "a device was lost: collectives of a communicator of {} ranks use the host's MPI from now on",
            team.size));
}

}  // namespace

Passage pass(Team& team, std::uint64_t* number) {
    *number = 0;
    if (team.reason == HostReason::none) {
        if (team.comm == MPI_COMM_NULL) return Passage::device;
        poll_letters();
        if (met_loss(team)) team.departure->report();
        *number = team.departure->next();
        const Passage passage = team.departure->passage_of(*number);
        if (passage != Passage::host) return passage;
        leave_device(team);
    }
    return must_hold(team) ? Passage::undecided : Passage::host;
}

Passage pass_settled(Team& team) {
    std::uint64_t number = 0;
    const Passage passage = pass(team, &number);
    if (passage != Passage::undecided) return passage;
    settle_within(team, std::numeric_limits<std::uint64_t>::max());
    if (number == 0) return Passage::host;
    const Passage decided = team.departure->passage_of(number);
    if (decided == Passage::host) leave_device(team);
    return decided;
}

bool must_hold(const Team& team) {
    return team.departure->is_undecided() || team.held_calls.load(std::memory_order_acquire) != 0;
}

int hold_back(OffloadedRequest& operation, std::uint64_t number, StartOnHost start, MPI_Request* request) {
    Team& team = *operation.team;
    operation.held.store(true, std::memory_order_relaxed);
    const int result = publish(operation, OFFPATH_OK, request);
    begin_message(team);
    const std::lock_guard lock(held_calls_mutex);
    const auto [queue, is_new] = queues.try_emplace(&team);
    if (is_new) retain(team);
    queue->second.push_back({&operation, number, std::move(start)});
    team.held_calls.fetch_add(1, std::memory_order_relaxed);
    teams_holding.store(static_cast<std::uint32_t>(queues.size()), std::memory_order_relaxed);
    return result;
}

void start_held_calls() {
    if (teams_holding.load(std::memory_order_relaxed) == 0 ||
        starting.test_and_set(std::memory_order_acquire))
        return;
    std::vector<std::pair<Team*, Queue*>> present;
    {
        const std::lock_guard lock(held_calls_mutex);
        for (auto& [team, queue] : queues)
            present.emplace_back(team, &queue);
    }
    for (const auto& [team, queue] : present) {
        start_calls_of(*team, *queue);
        {
            const std::lock_guard lock(held_calls_mutex);
            if (!queue->empty()) continue;
            queues.erase(team);
            teams_holding.store(static_cast<std::uint32_t>(queues.size()), std::memory_order_relaxed);
        }
        release(*team);
    }
    starting.clear(std::memory_order_release);
}

void before_collective(Team& team) {
    constexpr std::uint64_t patience_ns = 500'000'000;
    if (any_loss.load(std::memory_order_relaxed)) settle_within(team, patience_ns);
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
