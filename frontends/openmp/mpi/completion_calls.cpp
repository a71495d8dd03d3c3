// Waits and tests. An error of one request of several is reported as MPI says: MPI_ERR_IN_STATUS, with the
// error in its status.
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/requests.h"

#include <span>

namespace offpath::region_mpi {
namespace {

void raise(int error) {
    if (error == MPI_SUCCESS) return;
    throw MpiError{error, error == MPI_ERR_TRUNCATE ? "a message is longer than its receive buffer"
                                                    : "an operation failed on the device"};
}

// Ends a request that is done.
Outcome end(MPI_Request& handle) {
    return take(handle)->outcome;
}

MPI_Status* at(MPI_Status* statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

// Ends all of them, which are done or null.
void end_all(std::span<MPI_Request> handles, MPI_Status* statuses) {
    bool failed = false;
    for (std::size_t i = 0; i < handles.size(); ++i) {
        Outcome outcome;
        if (request_of(handles[i]) != nullptr) outcome = end(handles[i]);
        failed = failed || outcome.error != MPI_SUCCESS;
        MPI_Status* const status = at(statuses, static_cast<int>(i));
        fill(status, outcome);
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = outcome.error;
    }
    if (failed) throw MpiError{MPI_ERR_IN_STATUS, "an operation failed, or a message was too long"};
}

std::span<MPI_Request> list(int count, MPI_Request* handles) {
    if (count < 0) throw MpiError{MPI_ERR_COUNT, "the number of requests is negative"};
    return {handles, static_cast<std::size_t>(count)};
}

// The first that is done; `left`: whether there are any but null requests.
int find_done(std::span<MPI_Request> handles, bool& left) {
    left = false;
    for (std::size_t i = 0; i < handles.size(); ++i) {
        Request* const request = request_of(handles[i]);
        if (request == nullptr) continue;
        left = true;
        if (test(*request)) return static_cast<int>(i);
    }
    return MPI_UNDEFINED;
}

void end_one(std::span<MPI_Request> handles, int index, MPI_Status* status) {
    Outcome outcome;
    if (index != MPI_UNDEFINED) outcome = end(handles[static_cast<std::size_t>(index)]);
    fill(status, outcome);
    raise(outcome.error);
}

// Ends those that are done, and says how many these are; MPI_UNDEFINED if all are null.
int end_some(std::span<MPI_Request> handles, int* indices, MPI_Status* statuses) {
    int done = 0;
    bool left = false;
    bool failed = false;
    for (std::size_t i = 0; i < handles.size(); ++i) {
        Request* const request = request_of(handles[i]);
        if (request == nullptr) continue;
        left = true;
        if (!test(*request)) continue;
        const Outcome outcome = end(handles[i]);
        MPI_Status* const status = at(statuses, done);
        fill(status, outcome);
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = outcome.error;
        failed = failed || outcome.error != MPI_SUCCESS;
        indices[done++] = static_cast<int>(i);
    }
    if (failed) throw MpiError{MPI_ERR_IN_STATUS, "an operation failed, or a message was too long"};
    return left ? done : MPI_UNDEFINED;
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Wait(MPI_Request* handle, MPI_Status* status) {
    return in_call("MPI_Wait", MPI_COMM_WORLD, [&](Communicator&) {
        Outcome outcome;
        if (Request* const request = request_of(*handle)) {
            wait(*request);
            outcome = end(*handle);
        }
        fill(status, outcome);
        raise(outcome.error);
    });
}

OFFPATH_EXPORT int MPI_Waitall(int count, MPI_Request* handles, MPI_Status* statuses) {
    return in_call("MPI_Waitall", MPI_COMM_WORLD, [&](Communicator&) {
        const auto all = list(count, handles);
        for (const MPI_Request handle : all)
            if (Request* const request = request_of(handle)) wait(*request);
        end_all(all, statuses);
    });
}

OFFPATH_EXPORT int MPI_Waitany(int count, MPI_Request* handles, int* index, MPI_Status* status) {
    return in_call("MPI_Waitany", MPI_COMM_WORLD, [&](Communicator&) {
        const auto all = list(count, handles);
        bool left = true;
        Pause pause;
        while ((*index = find_done(all, left)) == MPI_UNDEFINED && left)
            pause();
        end_one(all, *index, status);
    });
}

OFFPATH_EXPORT int MPI_Waitsome(int count, MPI_Request* handles, int* done, int* indices,
                                MPI_Status* statuses) {
    return in_call("MPI_Waitsome", MPI_COMM_WORLD, [&](Communicator&) {
        const auto all = list(count, handles);
        Pause pause;
        while ((*done = end_some(all, indices, statuses)) == 0)
            pause();
    });
}

OFFPATH_EXPORT int MPI_Test(MPI_Request* handle, int* flag, MPI_Status* status) {
    return in_call("MPI_Test", MPI_COMM_WORLD, [&](Communicator&) {
        Request* const request = request_of(*handle);
        *flag = request == nullptr || test(*request) ? 1 : 0;
        if (*flag == 0) return;
        const Outcome outcome = request != nullptr ? end(*handle) : Outcome();
        fill(status, outcome);
        raise(outcome.error);
    });
}

OFFPATH_EXPORT int MPI_Testall(int count, MPI_Request* handles, int* flag, MPI_Status* statuses) {
    return in_call("MPI_Testall", MPI_COMM_WORLD, [&](Communicator&) {
        const auto all = list(count, handles);
        *flag = 1;
        for (const MPI_Request handle : all) {
            Request* const request = request_of(handle);
            if (request != nullptr && !test(*request)) *flag = 0;
        }
        if (*flag != 0) end_all(all, statuses);
    });
}

OFFPATH_EXPORT int MPI_Testany(int count, MPI_Request* handles, int* index, int* flag, MPI_Status* status) {
    return in_call("MPI_Testany", MPI_COMM_WORLD, [&](Communicator&) {
        const auto all = list(count, handles);
        bool left = true;
        *index = find_done(all, left);
        *flag = *index != MPI_UNDEFINED || !left ? 1 : 0;
        if (*flag != 0) end_one(all, *index, status);
    });
}

OFFPATH_EXPORT int MPI_Testsome(int count, MPI_Request* handles, int* done, int* indices,
                                MPI_Status* statuses) {
    return in_call("MPI_Testsome", MPI_COMM_WORLD,
                   [&](Communicator&) { *done = end_some(list(count, handles), indices, statuses); });
}

OFFPATH_EXPORT int MPI_Request_free(MPI_Request* handle) {
    return in_call("MPI_Request_free", MPI_COMM_WORLD, [&](Communicator&) {
        if (auto request = take(*handle)) abandon(std::move(request));
    });
}
