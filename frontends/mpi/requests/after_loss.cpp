#include "after_loss.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/lost_device.h"
#include "base/patience.h"
#include "outstanding.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

// How long a collective waits for a decision, or for messages of its second run. A device that hangs was
// noticed late, so the rest must be quick.
std::uint64_t patience_ns() {
    const std::uint64_t limit_ns = lost_after_ns();
    return lost_device::may_still_write() ? limit_ns / 5 : limit_ns;
}

// Whether an earlier collective of the team is to run again first.
bool must_follow(const OffloadedRequest& operation) {
    for (const OffloadedRequest* other = newest_outstanding; other != nullptr; other = other->next)
        if (other->departure == operation.departure && other->number != 0 &&
            other->number < operation.number &&
            other->departure->passage_of(other->number, repair_of(*other)) == Passage::again)
            return true;
    return false;
}

// Whether the device reaches this memory without system calls.
bool is_mapped(const void* address) {
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    return address != nullptr &&
           (offpath_mem_query(runtime().context, address, 1, &back_end, &progress) != OFFPATH_OK ||
            back_end == OFFPATH_BACK_END_MAP || back_end == OFFPATH_BACK_END_XGVMI);
}

bool receives_into_staging(const OffloadedRequest& operation) {
    return operation.recv_staging.address != nullptr && operation.part.recv == operation.recv_staging.address;
}

// Whether a message of a pair of ranks may be taken for that of a start which was given up, where this rank
// has then sent and received nothing.
bool may_mix_messages(const OffloadedRequest& operation) {
    return traits(operation.op).each_pair_decides() && operation.departure->has_given_up();
}

// Whether the device's part moves nothing, or only blocks of this rank to itself.
bool concerns_no_other_rank(const OffloadedRequest& operation) {
    const int self = operation.team->rank;
    const auto has_others = [&](const std::vector<std::size_t>& bytes, const std::vector<int>& peers) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (bytes[i] != 0 && (peers.empty() ? static_cast<int>(i) : peers[i]) != self) return true;
        return false;
    };
    const bool by_pairs = operation.part.shape == DevicePart::Shape::pairs;
    return (by_pairs || operation.part.shape == DevicePart::Shape::neighbors) &&
           !has_others(operation.send_bytes, by_pairs ? std::vector<int>{} : operation.send_peers) &&
           !has_others(operation.recv_bytes, by_pairs ? std::vector<int>{} : operation.recv_peers);
}

// Throws std::bad_alloc.
void leave_staging_to_device(OffloadedRequest& operation) {
    const std::size_t bytes = operation.recv_staging.bytes;
    operation.fresh_staging = std::make_unique<std::byte[]>(bytes);
    std::memcpy(operation.fresh_staging.get(), operation.recv_staging.address, bytes);
    operation.part.recv = operation.fresh_staging.get();
}

// A rank that does not come holds the others up no longer than the limit.
offpath_status_t run_second_time(OffloadedRequest& operation) {
    if (operation.second_run == nullptr) {
        if (must_follow(operation)) return OFFPATH_IN_PROGRESS;
        try {
            if (receives_into_staging(operation) && lost_device::may_still_write() &&
                is_mapped(operation.recv_staging.address))
                leave_staging_to_device(operation);
            operation.second_run = std::make_unique<SecondRun>(operation);
        } catch (const std::bad_alloc&) {
            operation.departure->give_up(operation.number);
            return OFFPATH_ERR_PEER_LOST;
        }
    }
    const offpath_status_t status = operation.second_run->progress();
    const bool in_vain =
        status == OFFPATH_IN_PROGRESS && now_ns() - operation.second_run->moved_ns() > patience_ns();
    if (status != OFFPATH_ERR_PEER_LOST && !in_vain) return status;
    operation.departure->give_up(operation.number);
    return OFFPATH_ERR_PEER_LOST;
}

// Where the ranks need not agree.
offpath_status_t run_alone(OffloadedRequest& operation) {
    try {
        if (operation.second_run == nullptr) operation.second_run = std::make_unique<SecondRun>(operation);
    } catch (const std::bad_alloc&) {
        return OFFPATH_ERR_PEER_LOST;
    }
    return operation.second_run->progress();
}

// A start of a persistent collective that is the host's. It waits for the other ranks as long as they take,
// as a collective of the host's MPI does.
offpath_status_t run_on_host(OffloadedRequest& operation) {
    if (operation.second_run == nullptr) {
        goes_to_host(operation);
        if (!can_run_again(operation)) return OFFPATH_ERR_PEER_LOST;
    }
    return run_alone(operation);
}

}  // namespace

Repair repair_of(Op op) {
    return {.direct = traits(op).is_direct(),
            .given = (op == Op::iallreduce || op == Op::ibcast || op == Op::iallgather) &&
                     SmallLane::of_given_results().usable()};
}

void keep_back(OffloadedRequest& operation, offpath_status_t status) {
    operation.on_device = status;
    operation.ended_ns = now_ns();
    kept_back.fetch_add(1, std::memory_order_relaxed);
}

void is_kept_back_no_longer(const OffloadedRequest& operation) {
    if (operation.on_device != OFFPATH_IN_PROGRESS) kept_back.fetch_sub(1, std::memory_order_relaxed);
}

offpath_status_t state_after_loss(OffloadedRequest& operation) {
    if (operation.on_device == OFFPATH_IN_PROGRESS) {
        const offpath_status_t status =
            operation.device != nullptr ? offpath_request_test(operation.device) : OFFPATH_ERR_PEER_LOST;
        if (status == OFFPATH_IN_PROGRESS) return status;
        keep_back(operation, status);
    }
    // Other errors have nothing to do with a loss.
    if (operation.on_device != OFFPATH_OK && operation.on_device != OFFPATH_ERR_PEER_LOST)
        return operation.on_device;
    Departure& departure = *operation.departure;
    Passage passage = departure.passage_of(operation.number, repair_of(operation));
    if (passage == Passage::device) return departure.is_closed() ? operation.on_device : OFFPATH_IN_PROGRESS;
    if (passage == Passage::undecided) {
        if (now_ns() - operation.ended_ns < patience_ns()) return OFFPATH_IN_PROGRESS;
        departure.give_up(operation.number);
        passage = Passage::lost;
    }
    if (passage == Passage::host) return run_on_host(operation);
    if (passage == Passage::again && !may_mix_messages(operation)) return run_second_time(operation);
    // A barrier needs no more than that. A rank that has left it needs no second run.
    if (operation.part.shape == DevicePart::Shape::barrier && departure.all_have_started(operation.number))
        return OFFPATH_OK;
    if (operation.on_device != OFFPATH_OK && concerns_no_other_rank(operation) && can_run_again(operation) &&
        !device_may_write(operation))
        return run_alone(operation);
    if (operation.second_run == nullptr) return operation.on_device;
    operation.second_run.reset();  // it may have overwritten a part of the device's result
    return OFFPATH_ERR_PEER_LOST;
}

void report_losses() {
    if (kept_back.load(std::memory_order_relaxed) == 0) return;
    struct Met {
        Team* team;
        Departure* departure;
        std::shared_ptr<Departure> kept;
    };
    std::vector<Met> met;
    {
        const std::lock_guard lock(outstanding_mutex);
        for (const OffloadedRequest* one = newest_outstanding; one != nullptr; one = one->next) {
            if (one->on_device != OFFPATH_ERR_PEER_LOST || one->departure->has_reported()) continue;
            retain(*one->team);
            met.push_back({one->team, one->departure, one->persistent ? one->own_departure : nullptr});
        }
    }
    for (const Met& one : met) {
        lost_on_team(*one.team, OFFPATH_ERR_PEER_LOST);
        one.departure->report();
        release(*one.team);
    }
}

void has_no_device(OffloadedRequest& operation) {
    operation.part_only = operation.fresh = true;
    keep_back(operation, OFFPATH_ERR_PEER_LOST);
}

void goes_to_host(OffloadedRequest& operation) {
    operation.on_host = true;
    operation.lane = operation.lane.after_loss();
}

bool device_may_write(const OffloadedRequest& operation) {
    if (!lost_device::may_still_write()) return false;
    return lost_device::may_still_call() ||
           (is_mapped(operation.part.recv) && !receives_into_staging(operation));
}

// What a daemon that has died was doing is over in a moment. One that was only stopped may continue later.
bool find_vote(const Departure& departure, std::uint64_t calls, std::uint64_t given_up, Vote& vote) {
    constexpr std::uint64_t while_dying_ns = 1'000'000'000;
    const std::unique_lock lock(outstanding_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    vote = {.started = calls};
    const auto is_asked_for = [&](const OffloadedRequest& one) {
        return one.number > given_up && one.number <= calls && one.departure == &departure;
    };
    const bool may_be_dying = lost_device::may_still_call();
    for (const OffloadedRequest* one = newest_outstanding; one != nullptr; one = one->next) {
        if (!is_asked_for(*one)) continue;
        const bool held = one->held.load(std::memory_order_acquire);
        if (!held && one->on_device == OFFPATH_IN_PROGRESS) return false;
        if (!held && may_be_dying && now_ns() - one->ended_ns < while_dying_ns) return false;
        if (vote.first == 0 || one->number < vote.first) vote.first = one->number;
    }
    for (const OffloadedRequest* one = newest_outstanding; one != nullptr; one = one->next) {
        if (!is_asked_for(*one) || one->number - vote.first >= 64) continue;
        const bool held = one->held.load(std::memory_order_acquire);
        if (held || (can_run_again(*one) && (one->fresh || !device_may_write(*one))))
            vote.intact |= 1ULL << (one->number - vote.first);
        if (!held && (one->fresh || !device_may_write(*one)))
            vote.can_receive |= 1ULL << (one->number - vote.first);
        vote.outstanding |= 1ULL << (one->number - vote.first);
    }
    departure.kept().for_each([&](std::uint64_t number, std::span<const std::byte>) {
        if (number <= calls && calls - number < 64) vote.kept |= 1ULL << (calls - number);
    });
    // Another thread may have started one that is not in the list yet.
    vote.complete = !runtime().threads;
    return true;
}

bool any_kept_back_for_now() {
    if (kept_back.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(outstanding_mutex);
    for (const OffloadedRequest* one = newest_outstanding; one != nullptr; one = one->next) {
        if (one->on_device == OFFPATH_IN_PROGRESS) continue;
        const Passage passage = one->departure->passage_of(one->number, repair_of(*one));
        if (passage == Passage::host) continue;
        if (passage != Passage::again || one->departure->all_have_started(one->number)) return true;
    }
    return false;
}

void give_up_kept_back() {
    const std::lock_guard lock(outstanding_mutex);
    for (const OffloadedRequest* one = newest_outstanding; one != nullptr; one = one->next)
        if (one->on_device != OFFPATH_IN_PROGRESS &&
            one->departure->passage_of(one->number, repair_of(*one)) == Passage::undecided)
            one->departure->give_up(one->number);
}

}  // namespace offpath::mpi
