#include "openmp/mpi/requests.h"

#include "base/pause.h"
#include "mpi/runtime/mixed_teams.h"
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/handles.h"
#include "openmp/mpi/layout.h"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <vector>

namespace offpath::region_mpi {
namespace {

Handles<MPI_Request, Request> handles;

struct Abandoned {
    std::mutex mutex;
    std::vector<std::unique_ptr<Request>> requests;
};
Abandoned abandoned;
constexpr std::size_t max_abandoned = 256;

int error_of(offpath_status_t status) {
    if (status == OFFPATH_OK) return MPI_SUCCESS;
    return status == OFFPATH_ERR_TRUNCATED ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
}

int source_of(std::uint32_t source, bool mixed) {
    return static_cast<int>(mixed ? mpi::mixed_teams::rank_of(source) : source);
}

void complete(Request& request, offpath_status_t status) {
    request.outcome.error = error_of(status);
    if (request.receives) {
        offpath_message_t message{};
        if (offpath_request_message(request.handle, &message) == OFFPATH_OK) {
            request.outcome.source = source_of(message.source, request.mixed);
            request.outcome.tag = static_cast<int>(message.tag);
            request.outcome.bytes = message.bytes;
            if (request.layout != nullptr && status == OFFPATH_OK)
                request.layout->unpack(request.copy.get(), std::min(message.bytes, request.room),
                                       request.elements);
        }
    }
    offpath_request_free(request.handle);
    request.handle = nullptr;
}

}  // namespace

MPI_Request handle_of(std::unique_ptr<Request> request) {
    return handles.make(request.release());
}

Request* request_of(MPI_Request handle) {
    if (handle == MPI_REQUEST_NULL || own(handle) == MPI_REQUEST_NULL) return nullptr;
    Request* const request = handles.find(handle);
    if (request == nullptr) throw MpiError{MPI_ERR_REQUEST, "it is no request of a target region"};
    return request;
}

std::unique_ptr<Request> take(MPI_Request& handle) {
    std::unique_ptr<Request> request(request_of(handle));
    if (request != nullptr) handles.forget(handle);
    handle = MPI_REQUEST_NULL;
    return request;
}

std::size_t live_requests() {
    std::lock_guard lock(abandoned.mutex);
    std::erase_if(abandoned.requests, [](const auto& each) { return test(*each); });
    return Request::live;
}

bool test(Request& request) {
    if (request.handle == nullptr) return true;
    const offpath_status_t status = offpath_request_test(request.handle);
    if (status == OFFPATH_IN_PROGRESS) return false;
    complete(request, status);
    return true;
}

void wait(Request& request) {
    if (request.handle != nullptr) complete(request, offpath_request_wait(request.handle));
}

Outcome finish(Request& request) {
    wait(request);
    if (request.outcome.error == MPI_ERR_TRUNCATE)
        throw MpiError{MPI_ERR_TRUNCATE, "the message is longer than the receive buffer"};
    if (request.outcome.error != MPI_SUCCESS)
        throw MpiError{request.outcome.error, "the operation failed on the device"};
    return request.outcome;
}

void abandon(std::unique_ptr<Request> request) {
    if (request->handle == nullptr) return;
    std::lock_guard lock(abandoned.mutex);
    if (abandoned.requests.size() >= max_abandoned) {
        std::erase_if(abandoned.requests, [](const auto& each) { return test(*each); });
        if (abandoned.requests.size() >= max_abandoned) {
            wait(*abandoned.requests.front());
            abandoned.requests.erase(abandoned.requests.begin());
        }
    }
    abandoned.requests.push_back(std::move(request));
}

void Pause::operator()() {
    constexpr int spins = 2000;
    if (++looks_ < spins) return pause_cpu();
    const timespec moment{0, 20'000};
    nanosleep(&moment, nullptr);
}

}  // namespace offpath::region_mpi
