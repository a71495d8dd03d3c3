#include "mixed_requests.h"

#include <vector>

#include "p2p/lock.h"
#include "p2p/parcel_progress.h"
#include "p2p/short_receives.h"
#include "p2p/waited_messages.h"
#include "requests/offloaded_requests.h"
#include "requests/persistent_requests.h"
#include "requests/status_errors.h"
#include "tuning/samples.h"

namespace offpath::mpi::mixed {
namespace {

MPI_Status* at(MPI_Status* statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

void poll_all() {
    poll();
    p2p::poll();
}

bool any_offloaded(int count, const MPI_Request* requests) {
    for (int i = 0; i < count && any_outstanding(); ++i) {
        if (is_outstanding(requests[i])) return true;
    }
    return false;
}

// The parcels behind an array of requests.
class Parcels {
  public:
    Parcels(int count, const MPI_Request* requests) {
        if (!p2p::any_registered() || requests == nullptr) return;
        const auto guard = p2p::lock();
        for (int i = 0; i < count; ++i) {
            p2p::Parcel* parcel = p2p::find_parcel(requests[i]);
            if (parcel == nullptr) continue;
            if (parcels_.empty()) parcels_.resize(static_cast<std::size_t>(count));
            parcels_[static_cast<std::size_t>(i)] = parcel;
            all_short_ = all_short_ && parcel->receives && !parcel->large && !parcel->host_done;
        }
    }
    bool none() const { return parcels_.empty(); }
    // Whether all of them are receives that the host's MPI will complete. Their statuses must be checked
    // afterwards.
    bool all_short() const { return all_short_; }
    p2p::Parcel* operator[](int i) const {
        return parcels_.empty() ? nullptr : parcels_[static_cast<std::size_t>(i)];
    }
    // Returns the requests, with those of parcels replaced by null.
    std::vector<MPI_Request> others(int count, const MPI_Request* requests) const {
        std::vector<MPI_Request> rest(requests, requests + count);
        for (int i = 0; i < count; ++i) {
            if ((*this)[i] != nullptr) rest[static_cast<std::size_t>(i)] = MPI_REQUEST_NULL;
        }
        return rest;
    }
    void put_back(int count, const std::vector<MPI_Request>& rest, MPI_Request* requests) const {
        for (int i = 0; i < count; ++i) {
            if ((*this)[i] == nullptr) requests[i] = rest[static_cast<std::size_t>(i)];
        }
    }

  private:
    std::vector<p2p::Parcel*> parcels_;
    bool all_short_ = true;
};

bool is_complete(p2p::Parcel& parcel) {
    const auto guard = p2p::lock();
    return p2p::advance(parcel);
}

int end(p2p::Parcel& parcel, MPI_Request* request, MPI_Status* status) {
    *request = MPI_REQUEST_NULL;
    return p2p::wait_for(parcel, status);
}

int wait_one(p2p::Parcel* parcel, MPI_Request* request, MPI_Status* status) {
    if (parcel != nullptr) return end(*parcel, request, status);
    if (any_outstanding()) wait_until_done(*request);
    return p2p::wait_for_host(request, status);
}

int wait_each(int count, MPI_Request* requests, const Parcels& parcels, MPI_Status* statuses) {
    std::vector<int> errors;
    for (int i = 0; i < count; ++i) {
        const int error = wait_one(parcels[i], &requests[i], at(statuses, i));
        if (error == MPI_SUCCESS) continue;
        errors.resize(static_cast<std::size_t>(count), MPI_SUCCESS);
        errors[static_cast<std::size_t>(i)] = error;
    }
    return errors.empty() ? MPI_SUCCESS : tell_errors(errors, statuses);
}

// The host's MPI waits for all requests at once. The messages that headers announced are waited for after
// that.
int wait_short(int count, MPI_Request* requests, const Parcels& parcels, MPI_Status* statuses) {
    thread_local std::vector<MPI_Status> own;
    own.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        if (parcels[i] != nullptr) p2p::forget_parcel(*parcels[i]);
    }
    const int result = PMPI_Waitall(count, requests, own.data());
    const bool in_status = is_in_status(result);
    std::vector<int> errors;
    for (int i = 0; i < count; ++i) {
        MPI_Status& status = own[static_cast<std::size_t>(i)];
        int error = in_status ? status.MPI_ERROR : MPI_SUCCESS;
        if (p2p::Parcel* parcel = parcels[i]) {
            if (requests[i] != MPI_REQUEST_NULL) {
                p2p::register_parcel(*parcel);  // an error of another request has ended the wait
            } else {
                parcel->handle = MPI_REQUEST_NULL;
                status.MPI_ERROR = error;
                p2p::host_is_done(*parcel, status);
                error = p2p::wait_for(*parcel, &status);
            }
        }
        if (statuses != MPI_STATUSES_IGNORE) p2p::copy_status(status, &statuses[i]);
        if (error == MPI_SUCCESS) continue;
        errors.resize(static_cast<std::size_t>(count), MPI_SUCCESS);
        errors[static_cast<std::size_t>(i)] = error;
    }
    if (result != MPI_SUCCESS && !in_status) return result;
    return errors.empty() ? MPI_SUCCESS : tell_errors(errors, statuses);
}

// The other requests are tested once the parcels are complete, by the call that ends them. A separate test
// before that would not do: MPICH 5.0 forgets the status of a persistent request after it.
int test_all_once(int count, MPI_Request* requests, const Parcels& parcels, int* flag, MPI_Status* statuses) {
    *flag = 0;
    for (int i = 0; i < count; ++i) {
        if (parcels[i] != nullptr && !is_complete(*parcels[i])) return MPI_SUCCESS;
    }
    std::vector<MPI_Request> rest = parcels.others(count, requests);
    const int result = PMPI_Testall(count, rest.data(), flag, statuses);
    parcels.put_back(count, rest, requests);
    if (*flag == 0) return result;
    std::vector<int> errors(static_cast<std::size_t>(count), MPI_SUCCESS);
    bool wrong = result != MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
        int& error = errors[static_cast<std::size_t>(i)];
        if (parcels[i] != nullptr) {
            error = end(*parcels[i], &requests[i], at(statuses, i));
            wrong = wrong || error != MPI_SUCCESS;
        } else if (is_in_status(result) && statuses != MPI_STATUSES_IGNORE) {
            error = statuses[i].MPI_ERROR;
        }
    }
    return wrong ? tell_errors(errors, statuses) : MPI_SUCCESS;
}

int test_any_once(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
    poll_all();
    const Parcels parcels(count, requests);
    if (parcels.none()) return PMPI_Testany(count, requests, index, flag, status);
    for (int i = 0; i < count; ++i) {
        if (parcels[i] == nullptr || !is_complete(*parcels[i])) continue;
        *index = i;
        *flag = 1;
        return end(*parcels[i], &requests[i], status);
    }
    std::vector<MPI_Request> rest = parcels.others(count, requests);
    const int result = PMPI_Testany(count, rest.data(), index, flag, status);
    parcels.put_back(count, rest, requests);
    if (*flag != 0 && *index == MPI_UNDEFINED) *flag = 0;  // the parcels are active
    return result;
}

int test_some_once(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
    poll_all();
    const Parcels parcels(count, requests);
    if (parcels.none()) return PMPI_Testsome(count, requests, done, indices, statuses);
    std::vector<MPI_Request> rest = parcels.others(count, requests);
    const int result = PMPI_Testsome(count, rest.data(), done, indices, statuses);
    parcels.put_back(count, rest, requests);
    if (*done == MPI_UNDEFINED) *done = 0;
    std::vector<int> errors(static_cast<std::size_t>(*done), MPI_SUCCESS);
    for (int i = 0; is_in_status(result) && statuses != MPI_STATUSES_IGNORE && i < *done; ++i)
        errors[static_cast<std::size_t>(i)] = statuses[i].MPI_ERROR;
    bool wrong = result != MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
        if (parcels[i] == nullptr || !is_complete(*parcels[i])) continue;
        indices[*done] = i;
        errors.push_back(end(*parcels[i], &requests[i], at(statuses, *done)));
        wrong = wrong || errors.back() != MPI_SUCCESS;
        ++*done;
    }
    return wrong ? tell_errors(errors, statuses) : MPI_SUCCESS;
}

// Repeats `test` until it fails or sets `finished`. Where all requests are the host's MPI's alone, the thread
// waits as the host's MPI would.
template <typename Test>
int test_until(int count, const MPI_Request* requests, Test test) {
    const bool pauses = p2p::any_registered() || p2p::must_attend() || any_offloaded(count, requests);
    for (Backoff backoff;;) {
        bool finished = false;
        const int result = test(finished);
        if (finished || result != MPI_SUCCESS) return result;
        if (pauses) pause_for_any(backoff);
    }
}

}  // namespace

int wait(MPI_Request* request, MPI_Status* status) {
    const FollowedWait followed(1, request);
    StandIns real(1, request);
    const p2p::Look look(1, real.data());
    if (request == nullptr) return PMPI_Wait(request, status);
    if (int result = MPI_SUCCESS; p2p::wait_for_short(real.data(), status, &result)) return result;
    const Parcels parcels(1, real.data());
    return wait_one(parcels[0], real.data(), status);
}

int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    const p2p::Look look(count, real.data());
    if (requests == nullptr) return PMPI_Waitall(count, requests, statuses);
    if (int result = MPI_SUCCESS; p2p::wait_for_all_short(count, real.data(), statuses, &result))
        return result;
    const Parcels parcels(count, real.data());
    if (parcels.none() && !p2p::must_attend()) {
        for (int i = 0; i < count && any_outstanding(); ++i)
            wait_until_done(real.data()[i]);
        if (!p2p::must_poll()) return PMPI_Waitall(count, real.data(), statuses);
    }
    if (parcels.all_short() && !runtime().threads && !p2p::must_poll())
        return wait_short(count, real.data(), parcels, statuses);
    return wait_each(count, real.data(), parcels, statuses);
}

int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    const p2p::Look look(count, real.data());
    if (requests == nullptr || (!p2p::any_registered() && !p2p::must_poll()))
        return PMPI_Waitany(count, real.data(), index, status);
    return test_until(count, real.data(), [&](bool& finished) {
        int flag = 0;
        const int result = test_any_once(count, real.data(), index, &flag, status);
        finished = flag != 0;
        return result;
    });
}

int wait_some(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    const p2p::Look look(count, real.data());
    if (requests == nullptr || (!p2p::any_registered() && !p2p::must_poll()))
        return PMPI_Waitsome(count, real.data(), done, indices, statuses);
    return test_until(count, real.data(), [&](bool& finished) {
        const int result = test_some_once(count, real.data(), done, indices, statuses);
        finished = *done != 0;
        return result;
    });
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
    const FollowedWait followed(1, request);
    poll_all();
    StandIns real(1, request);
    const p2p::Look look(1, real.data());
    const Parcels parcels(1, real.data());
    if (parcels[0] == nullptr) return PMPI_Test(real.data(), flag, status);
    *flag = is_complete(*parcels[0]) ? 1 : 0;
    return *flag != 0 ? end(*parcels[0], real.data(), status) : MPI_SUCCESS;
}

int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    poll_all();
    StandIns real(count, requests);
    const p2p::Look look(count, real.data());
    const Parcels parcels(count, real.data());
    if (parcels.none()) return PMPI_Testall(count, real.data(), flag, statuses);
    return test_all_once(count, real.data(), parcels, flag, statuses);
}

int test_any(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    const p2p::Look look(count, real.data());
    return test_any_once(count, real.data(), index, flag, status);
}

int test_some(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    const p2p::Look look(count, real.data());
    return test_some_once(count, real.data(), done, indices, statuses);
}

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
    poll_all();
    const MPI_Request real = stand_in_of(request);
    const p2p::Look look(1, &real);
    const Parcels parcels(1, &real);
    if (parcels[0] == nullptr) return PMPI_Request_get_status(real, flag, status);
    *flag = is_complete(*parcels[0]) ? 1 : 0;
    if (*flag != 0) p2p::copy_status(parcels[0]->status, status);
    return MPI_SUCCESS;
}

}  // namespace offpath::mpi::mixed
