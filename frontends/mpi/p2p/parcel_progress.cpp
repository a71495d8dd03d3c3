#include "parcel_progress.h"

#include <fmt/format.h>

#include <cstring>

#include "base/clock.h"
#include "communicators/communicators.h"
#include "counts.h"
#include "lock.h"
#include "requests/held_calls.h"
#include "requests/offloaded_requests.h"
#include "rescue.h"
#include "runtime/backoff.h"
#include "runtime/departure.h"
#include "runtime/losses.h"
#include "sendrecv_requests.h"

namespace offpath::mpi::p2p {

namespace {

constexpr int attended_a_poll = 4;
constexpr std::uint64_t patience_ns = 20'000'000;
constexpr std::uint64_t ask_again_ns = 200'000'000;

bool keyed_message_is_done(Parcel& parcel) {
    const offpath_status_t status = offpath_request_test(parcel.keyed_message);
    if (status == OFFPATH_IN_PROGRESS) return false;
    offpath_request_free(parcel.keyed_message);
    parcel.keyed_message = nullptr;
    if (!parcel.receives) left_device(parcel);
    if (parcel.early) not_early(parcel);
    if (status == OFFPATH_ERR_PEER_LOST) lost_rank(parcel.pairs->world(parcel.peer));
    if (status == OFFPATH_ERR_TRUNCATED) {
        fail(parcel, MPI_ERR_TRUNCATE, "receive", status);
    } else if (status == OFFPATH_ERR_PEER_LOST &&
               (parcel.receives ? begin_rescue(parcel) : send_again(parcel))) {
        return true;
    } else if (status != OFFPATH_OK) {
        fail(parcel, MPI_ERR_OTHER, parcel.receives ? "receive" : "send", status);
    }
    return true;
}

// Whether the device has ended its part of a send, or lost it.
bool left_by_device(const Parcel& send) {
    return send.keyed_message == nullptr || offpath_request_test(send.keyed_message) != OFFPATH_IN_PROGRESS;
}

// If a send waits for long, the receiver has not posted its receive. The receiver's device then stores the
// message, as far as it has room, so that the sender can continue.
void ask_to_store(Parcel& parcel) {
    const std::uint64_t now = now_ns();
    if (parcel.asked_ns == 0) {
        parcel.asked_ns = now - ask_again_ns + patience_ns;
    } else if (now - parcel.asked_ns >= ask_again_ns) {
        parcel.asked_ns = now;
        offpath_message_store(world_team(), static_cast<std::uint32_t>(parcel.pairs->world(parcel.peer)),
                              parcel.key);
    }
}

void end_status(Parcel& parcel) {
    if (!parcel.by_header) return;
    PMPI_Status_set_elements_x(&parcel.status, MPI_BYTE, static_cast<MPI_Count>(parcel.announced));
    PMPI_Status_set_cancelled(&parcel.status, 0);
}

}  // namespace

void fail(Parcel& parcel, int error, const char* what, offpath_status_t status) {
    parcel.error = error;
    parcel.error_is_ours = true;
    if (error == MPI_ERR_TRUNCATE) return;
    warn(Code::operation,
         fmt::format("rank {}: a {} of {} bytes, rank {} of the communicator, failed: {}", runtime().rank,
                     what, parcel.capacity, parcel.peer, offpath_status_string(status)));
}

bool advance(Parcel& parcel) {
    if (parcel.complete) return true;
    if (!parcel.host_done) {
        int flag = 0;
        MPI_Status status;
        status.MPI_ERROR = MPI_SUCCESS;  // some MPI libraries do not set it
        // MPICH returns the request's error here, after it has called the handler. Other libraries do so when
        // the request ends.
        if (const int error = PMPI_Request_get_status(parcel.handle, &flag, &status); error != MPI_SUCCESS) {
            parcel.error_is_told = true;
            status.MPI_ERROR = error;
        } else if (flag == 0) {
            return false;
        }
        host_is_done(parcel, status);
    }
    if (parcel.payload != MPI_REQUEST_NULL) {
        int flag = 0;
        const int error = PMPI_Test(&parcel.payload, &flag, MPI_STATUS_IGNORE);
        if (flag == 0 && error == MPI_SUCCESS) return false;
        parcel.payload = MPI_REQUEST_NULL;
        if (error != MPI_SUCCESS) fail(parcel, error, "payload", OFFPATH_ERR_PEER_LOST);
    } else if (parcel.attended && !parcel.forsaken && parcel.receives && parcel.lost_ns == 0) {
        disregard(parcel);  // the device needs no help
    }
    if (parcel.keyed_message != nullptr && !keyed_message_is_done(parcel)) {
        if (!parcel.receives) ask_to_store(parcel);
        return false;
    }
    if (parcel.lost_ns != 0) {
        if (!advance_rescue(parcel)) return false;
        if (parcel.payload != MPI_REQUEST_NULL) return advance(parcel);
    }
    if (parcel.receives && parcel.error == MPI_SUCCESS) deliver(parcel);
    end_status(parcel);
    parcel.complete = true;
    return true;
}

void copy_status(const MPI_Status& from, MPI_Status* to) {
    if (to == MPI_STATUS_IGNORE) return;
    // Calls that complete a single request do not change this field.
    const int error = to->MPI_ERROR;
    *to = from;
    to->MPI_ERROR = error;
}

int finish(Guard& guard, Parcel& parcel, MPI_Status* status) {
    MPI_Request handle = parcel.handle;
    int error = parcel.error;
    const bool told = parcel.error_is_told;
    bool ours = parcel.error_is_ours;
    const bool receives = parcel.receives;
    const MPI_Comm comm = parcel.team->comm;
    copy_status(parcel.status, status);
    ended(parcel);
    release_parcel(parcel);
    guard.unlock();
    if (handle != MPI_REQUEST_NULL) {
        // An error of the host's MPI; this calls its handler if that was not done before.
        const int its = told ? MPI_SUCCESS : PMPI_Wait(&handle, MPI_STATUS_IGNORE);
        if (its != MPI_SUCCESS) {
            error = its;
            ours = false;
        }
        if (!receives || told) PMPI_Request_free(&handle);  // sends are persistent requests
    }
    if (ours) PMPI_Comm_call_errhandler(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, error);
    return error;
}

// Whether the thread may use the host's own wait, which is the fastest. There must be only one thread and
// nothing else to progress, and most likely nothing left to do for the device afterwards.
bool may_sit_in_host(const Parcel& parcel) {
    return !runtime().threads && !parcel.host_done &&
           (parcel.by_host || (parcel.receives && !parcel.large)) && outstanding.requests == 0 &&
           all_attended_are_the_hosts();
}

void sit_in_host(Parcel& parcel) {
    MPI_Request handle = parcel.handle;
    forget_parcel(parcel);
    parcel.handle = MPI_REQUEST_NULL;
    MPI_Status status;
    status.MPI_ERROR = MPI_SUCCESS;
    const int error = PMPI_Wait(&handle, &status);
    status.MPI_ERROR = error;
    if (!parcel.receives) {
        parcel.error = error;
        PMPI_Request_free(&handle);  // sends are persistent requests
    }
    host_is_done(parcel, status);
}

int wait_for(Parcel& parcel, MPI_Status* status) {
    look_at(parcel);
    if (may_sit_in_host(parcel)) sit_in_host(parcel);
    auto guard = lock();
    for (Backoff backoff; !advance(parcel);) {
        const bool sleeps = !runtime().threads && parcel.keyed_message != nullptr &&
                            offpath_request_test(parcel.keyed_message) == OFFPATH_IN_PROGRESS;
        const offpath_request_h device = sleeps ? parcel.keyed_message : nullptr;
        guard.unlock();
        mpi::poll();
        poll();
        backoff.pause(device);
        guard.lock();
    }
    return finish(guard, parcel, status);
}

int wait_for_host(MPI_Request* request, MPI_Status* status) {
    for (Backoff backoff; must_poll();) {
        int flag = 0;
        const int error = PMPI_Test(request, &flag, status);
        if (flag != 0 || error != MPI_SUCCESS) return error;
        mpi::poll();
        poll();
        // While no parcel needs this thread, it waits as the host's MPI would.
        if (must_attend()) backoff.pause();
    }
    return PMPI_Wait(request, status);
}

void forsake(Parcel& parcel) {
    parcel.forsaken = true;
    forget_parcel(parcel);
    attend(parcel);
}

void poll() {
    poll_letters();
    start_held_calls();
    if (must_answer_rescue_notes()) {
        if (Guard guard; guard.try_lock()) answer_rescue_notes();
    }
    if (!must_attend()) return;
    if (any_sendrecvs()) poll_sendrecvs();
    for (int i = 0; i < attended_a_poll; ++i) {
        Guard guard;
        if (!guard.try_lock()) return;
        Parcel* parcel = next_attended();
        if (parcel == nullptr) return;
        if (!parcel->receives && !parcel->forsaken && !left_by_device(*parcel)) continue;
        if (!advance(*parcel)) continue;
        if (parcel->forsaken) {
            finish(guard, *parcel, MPI_STATUS_IGNORE);
        } else {
            disregard(*parcel);
        }
    }
}

void finish_of(const Team& team) {
    const auto any = [&] {
        const auto guard = lock();
        return any_forsaken(team);
    };
    for (Backoff backoff; must_attend() && any(); backoff.pause()) {
        mpi::poll();
        poll();
    }
}

void finish_all() {
    for (Backoff backoff; any_forsaken_send() || any_sendrecvs(); backoff.pause())
        poll();
}

}  // namespace offpath::mpi::p2p
