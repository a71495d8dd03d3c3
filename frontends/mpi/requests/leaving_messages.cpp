#include "leaving_messages.h"

#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/patience.h"
#include "outstanding.h"

namespace offpath::mpi {
namespace {

std::mutex leaving_mutex;
std::unique_ptr<LeavingMessages> leaving;

// An error of the host's MPI ends a message, too.
bool has_left(MPI_Request& request) {
    int done = 0;
    return PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
}

}  // namespace

void let_leave(std::unique_ptr<LeavingMessages> messages) noexcept {
    const std::lock_guard lock(leaving_mutex);
    messages->next = std::move(leaving);
    leaving = std::move(messages);
    lists_of_leaving_messages.fetch_add(1, std::memory_order_relaxed);
    outstanding.requests.raise();
}

void finish_leaving_messages() {
    if (lists_of_leaving_messages.load(std::memory_order_relaxed) == 0) return;
    const std::unique_lock lock(leaving_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (std::unique_ptr<LeavingMessages>* link = &leaving; *link != nullptr;) {
        LeavingMessages& messages = **link;
        std::erase_if(messages.requests, has_left);
        if (!messages.requests.empty()) {
            link = &messages.next;
            continue;
        }
        *link = std::move(messages.next);
        lists_of_leaving_messages.fetch_sub(1, std::memory_order_relaxed);
        outstanding.requests.lower();
    }
}

bool must_follow_others(const LeavingMessages& messages) {
    const std::lock_guard lock(leaving_mutex);
    for (const LeavingMessages* one = leaving.get(); one != nullptr; one = one->next.get())
        if (one->team == messages.team && one->lane == messages.lane) return true;
    return false;
}

void wait_for_leaving_messages() {
    const std::uint64_t end_ns = now_ns() + lost_after_ns();
    while (lists_of_leaving_messages.load(std::memory_order_relaxed) != 0 && now_ns() < end_ns)
        finish_leaving_messages();
}

}  // namespace offpath::mpi
