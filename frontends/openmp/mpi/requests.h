// Requests of MPI calls in target regions, and their handles. A handle is the object's address, or a number
// where the MPI's handles are numbers. Ownership: a request lives until the call that completes it, or until
// it is freed and its operation is done. Threads: any; a request belongs to one thread at a time.
#pragma once

#include <mpi.h>
#include <offpath/request.h>

#include <atomic>
#include <cstddef>
#include <memory>

namespace offpath::region_mpi {

struct Communicator;
struct Layout;

// What a status tells.
struct Outcome {
    int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
    std::size_t bytes = 0;
    int error = MPI_SUCCESS;
};
void fill(MPI_Status* status, const Outcome& outcome);

struct Request {
    Request() { ++live; }
    ~Request() { --live; }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    inline static std::atomic<std::size_t> live{0};
    offpath_request_h handle = nullptr;  // null: it is over
    bool receives = false;               // the device tells the outcome
    bool mixed = false;                  // its source is a member of a mixed team
    Outcome outcome;
    std::unique_ptr<std::byte[]> copy;  // of what is sent, or received before it is unpacked
    bool done_at_once = false;          // a send, for the region
    // A receive that is unpacked goes to `elements`, and has at most `room` bytes.
    std::shared_ptr<const Layout> layout;
    void* elements = nullptr;
    std::size_t room = 0;
};

// The handle for a request, which it owns from now on.
MPI_Request handle_of(std::unique_ptr<Request> request);
// Null for MPI_REQUEST_NULL, the host's too. Throws MpiError: MPI_ERR_REQUEST.
Request* request_of(MPI_Request handle);
// Ends the handle, which becomes MPI_REQUEST_NULL.
std::unique_ptr<Request> take(MPI_Request& handle);

// The number of requests that no call has completed.
std::size_t live_requests();

// True: the request is done, and its outcome is known. Errors are in the outcome.
bool test(Request& request);
void wait(Request& request);
// Waits, and throws MpiError if it ended with an error.
Outcome finish(Request& request);
// Gives the request up: it is freed by itself when it is done.
void abandon(std::unique_ptr<Request> request);

// A thread that polls calls it between its looks.
class Pause {
  public:
    void operator()();

  private:
    int looks_ = 0;
};

}  // namespace offpath::region_mpi
