#include "sendrecv_requests.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "lock.h"
#include "parcel_progress.h"

namespace offpath::mpi::p2p {
namespace {

struct SendrecvRequest {
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;  // null: ended
    StagingBlock sent_from;
    MPI_Request handle = MPI_REQUEST_NULL;
    MPI_Status status{};
    int error = MPI_SUCCESS;
    std::atomic<int> holders{2};  // held by the host's MPI, until it frees the request, and by poll_sendrecvs
};

std::mutex sendrecvs_mutex;  // guards the following two
std::vector<SendrecvRequest*> sendrecvs;
bool looked_after = false;  // a thread has taken the list; error handlers may add to it meanwhile

void let_go(SendrecvRequest& request) {
    if (request.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &request;
}

int on_query(void* state, MPI_Status* status) {
    const auto& request = *static_cast<SendrecvRequest*>(state);
    copy_status(request.status, status);
    return request.error;
}

int on_free(void* state) {
    let_go(*static_cast<SendrecvRequest*>(state));
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

bool are_over(SendrecvRequest& request) {
    const bool received = has_ended(request.receive, &request.status, request.error);
    return has_ended(request.send, MPI_STATUS_IGNORE, request.error) && received;
}

}  // namespace

int join(MPI_Request receive, MPI_Request send, StagingBlock sent_from, MPI_Request* request) {
    auto* made = new SendrecvRequest;
    made->receive = receive;
    made->send = send;
    made->sent_from = sent_from;
    const int result = PMPI_Grequest_start(on_query, on_free, on_cancel, made, &made->handle);
    *request = made->handle;
    const std::lock_guard guard(sendrecvs_mutex);
    sendrecvs.push_back(made);
    outstanding_sendrecvs.fetch_add(1, std::memory_order_relaxed);
    outstanding.attended.raise();
    return result;
}

void poll_sendrecvs() {
    std::vector<SendrecvRequest*> taken;
    {
        const std::lock_guard guard(sendrecvs_mutex);
        if (looked_after) return;
        looked_after = true;
        taken.swap(sendrecvs);
    }
    const auto over = std::partition(taken.begin(), taken.end(),
                                     [](SendrecvRequest* request) { return !are_over(*request); });
    const std::vector<SendrecvRequest*> ended(over, taken.end());
    {
        const std::lock_guard guard(sendrecvs_mutex);
        sendrecvs.insert(sendrecvs.end(), taken.begin(), over);
        looked_after = false;
    }
    for (SendrecvRequest* request : ended) {
        release_staging(request->sent_from);
        outstanding_sendrecvs.fetch_sub(1, std::memory_order_relaxed);
        outstanding.attended.lower();
        PMPI_Grequest_complete(request->handle);
        let_go(*request);
    }
}

}  // namespace offpath::mpi::p2p
