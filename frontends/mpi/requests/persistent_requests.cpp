#include "persistent_requests.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/outstanding_counts.h"
#include "runtime/request_hash.h"

namespace offpath::mpi {
namespace {

struct Persistent {
    StartOperation start;
    MPI_Request started = MPI_REQUEST_NULL;  // not null: the request is active
};

std::mutex persistent_mutex;
// Never destroyed: requests that the program has not freed hold objects of the host's MPI, and the host's MPI
// ends first.
auto& persistent_by_hash = *new std::unordered_map<std::uint64_t, std::shared_ptr<Persistent>>;

std::shared_ptr<Persistent> find_persistent(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return nullptr;
    const std::lock_guard lock(persistent_mutex);
    const auto found = persistent_by_hash.find(hash_of(request));
    return found != persistent_by_hash.end() ? found->second : nullptr;
}

void set_started(Persistent& persistent, MPI_Request started) {
    if (started == persistent.started) return;
    if (persistent.started == MPI_REQUEST_NULL) outstanding.persistent_active.raise();
    if (started == MPI_REQUEST_NULL) outstanding.persistent_active.lower();
    persistent.started = started;
}

int refuse_start(int error) {
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, error);
    return error;
}

}  // namespace

int make_persistent(StartOperation start, MPI_Request* request) {
    MPI_Request handle = MPI_REQUEST_NULL;
    // The source is not MPI_PROC_NULL: with it, a persistent collective that MPICH 4.0 later makes in the
    // request's place would never start.
    const int result = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &handle);
    if (result != MPI_SUCCESS) return result;
    {
        const std::lock_guard lock(persistent_mutex);
        persistent_by_hash[hash_of(handle)] = std::make_shared<Persistent>(Persistent{std::move(start)});
    }
    persistent_requests.fetch_add(1, std::memory_order_relaxed);
    *request = handle;
    return MPI_SUCCESS;
}

int start_persistent(MPI_Request* request) {
    const std::shared_ptr<Persistent> persistent = find_persistent(*request);
    if (persistent == nullptr) return PMPI_Start(request);
    if (persistent->started != MPI_REQUEST_NULL) return refuse_start(MPI_ERR_REQUEST);
    MPI_Request started = MPI_REQUEST_NULL;
    const int result = persistent->start(&started);
    if (result == MPI_SUCCESS) set_started(*persistent, started);
    return result;
}

bool end_persistent(MPI_Request request, MPI_Request* started) {
    const std::shared_ptr<Persistent> persistent = find_persistent(request);
    if (persistent == nullptr) return false;
    {
        const std::lock_guard lock(persistent_mutex);
        persistent_by_hash.erase(hash_of(request));
    }
    persistent_requests.fetch_sub(1, std::memory_order_relaxed);
    *started = persistent->started;
    set_started(*persistent, MPI_REQUEST_NULL);
    return true;
}

MPI_Request stand_in_of(MPI_Request request) {
    if (outstanding.persistent_active == 0) return request;
    const std::shared_ptr<Persistent> persistent = find_persistent(request);
    return persistent != nullptr && persistent->started != MPI_REQUEST_NULL ? persistent->started : request;
}

StandIns::StandIns(int count, MPI_Request* requests) : users_(requests), requests_(requests) {
    if (outstanding.persistent_active != 0 && requests != nullptr) exchange(count);
}

void StandIns::exchange(int count) {
    for (int i = 0; i < count; ++i) {
        const MPI_Request real = stand_in_of(users_[i]);
        if (real == users_[i]) continue;
        if (exchanged_.empty()) {
            count_ = count;
            if (static_cast<std::size_t>(count) > few_.size()) many_.resize(static_cast<std::size_t>(count));
            requests_ = many_.empty() ? few_.data() : many_.data();
            std::copy_n(users_, count, requests_);
        }
        requests_[i] = real;
        exchanged_.push_back({i, users_[i]});
    }
}

StandIns::~StandIns() {
    if (count_ == 0) return;
    for (const Exchanged& one : exchanged_) {
        if (const std::shared_ptr<Persistent> persistent = find_persistent(one.handle))
            set_started(*persistent, requests_[one.index]);
        requests_[one.index] = one.handle;
    }
    std::copy_n(requests_, count_, users_);
}

}  // namespace offpath::mpi
