#include "sendrecv_requests.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "lock.h"
#include "parcel_progress.h"

namespace offpath::mpi::p2p {
namespace {

struct Joined {
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;  // null: ended
    StagingBlock sent_from;
    MPI_Request handle = MPI_REQUEST_NULL;
    MPI_Status status{};
    int error = MPI_SUCCESS;
    std::atomic<int> holders{2};  // held by the host's MPI, until it frees the request, and by poll_joined
};

std::mutex joined_mutex;  // guards the following two
std::vector<Joined*> under_way;
bool looked_after = false;  // a thread has taken the list; error handlers may add to it meanwhile

void let_go(Joined& joined) {
    if (joined.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &joined;
}

int on_query(void* state, MPI_Status* status) {
    const auto& joined = *static_cast<Joined*>(state);
    copy_status(joined.status, status);
    return joined.error;
}

int on_free(void* state) {
    let_go(*static_cast<Joined*>(state));
    return MPI_SUCCESS;
}

int on_cancel(void*, int) {
    return MPI_SUCCESS;
}

// Whether one of the two has ended; its request is then null. Keeps the first error.
bool has_ended(MPI_Request& request, MPI_Status* status, int& error) {
    if (request == MPI_REQUEST_NULL) return true;
    auto guard = lock();
    int its = MPI_SUCCESS;
    if (Parcel* parcel = find_parcel(request)) {
        if (!advance(*parcel)) return false;
        its = finish(guard, *parcel, status);
    } else {
        guard.unlock();
        int flag = 0;
        its = PMPI_Test(&request, &flag, status);
        if (flag == 0 && its == MPI_SUCCESS) return false;
    }
    request = MPI_REQUEST_NULL;
    if (error == MPI_SUCCESS) error = its;
    return true;
}

bool are_over(Joined& joined) {
    const bool received = has_ended(joined.receive, &joined.status, joined.error);
    return has_ended(joined.send, MPI_STATUS_IGNORE, joined.error) && received;
}

}  // namespace

int join(MPI_Request receive, MPI_Request send, StagingBlock sent_from, MPI_Request* request) {
    auto* joined = new Joined;
    joined->receive = receive;
    joined->send = send;
    joined->sent_from = sent_from;
    const int result = PMPI_Grequest_start(on_query, on_free, on_cancel, joined, &joined->handle);
    *request = joined->handle;
    const std::lock_guard guard(joined_mutex);
    under_way.push_back(joined);
    joined_under_way.fetch_add(1, std::memory_order_relaxed);
    outstanding.attended.raise();
    return result;
}

void poll_joined() {
    std::vector<Joined*> taken;
    {
        const std::lock_guard guard(joined_mutex);
        if (looked_after) return;
        looked_after = true;
        taken.swap(under_way);
    }
    const auto over =
        std::partition(taken.begin(), taken.end(), [](Joined* joined) { return !are_over(*joined); });
    const std::vector<Joined*> ended(over, taken.end());
    {
        const std::lock_guard guard(joined_mutex);
        under_way.insert(under_way.end(), taken.begin(), over);
        looked_after = false;
    }
    for (Joined* joined : ended) {
        release_staging(joined->sent_from);
        joined_under_way.fetch_sub(1, std::memory_order_relaxed);
        outstanding.attended.lower();
        PMPI_Grequest_complete(joined->handle);
        let_go(*joined);
    }
}

}  // namespace offpath::mpi::p2p
