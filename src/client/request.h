// Requests: the handles of started operations, and their completion slots. A request holds a slot from its
// start until its completion is noticed; the handle lives until it is freed. An operation whose handle was
// freed early finishes in the background. Its slot and the memory that it owns are recovered when slots are
// needed, or at finalize.
//
// Ownership: the table owns requests. Threads: everything under the context's lock, except pending() and
// seen().
#pragma once

#include "base/status.h"
#include "control/channel.h"

#include <offpath/request.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

struct offpath_context;
struct offpath_window;

struct offpath_request {
    offpath_context* context = nullptr;
    std::uint32_t slot = 0;
    // in_progress until the completion has been processed.
    std::atomic<std::int32_t> result{OFFPATH_OK};
    bool receives = false;
    bool freed = false;
    bool traced = false;
    // The window that counts it among the watched, or that it flushes, until it is over.
    offpath_window* window = nullptr;
    std::uint32_t target = 0;
    bool updates = false;
    // A flush of the window covers `unwatched` operations without a request, with numbers up to `loose`.
    bool flushes = false;
    std::uint64_t loose = 0;
    std::uint32_t unwatched = 0;
    offpath::Status earlier = offpath::Status::ok;  // an earlier error that it reports besides its own
    offpath_message_t message{};
    std::unique_ptr<std::byte[]> owned;  // a buffer of ours that the operation uses
    // The operation's shared copy (base/shared_parts.h); no bytes: it has none.
    struct SharedCopy {
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        std::uint64_t bytes = 0;
    } shared;
    bool large = false;  // it uses memory that may be moved into huge pages
    // The memory that the operation uses, for mem_deregister. Empty: any memory.
    struct Used {
        std::uintptr_t begin = 0, end = 0;
        bool shares = false;  // its pages may be shared with the device
    };
    std::vector<Used> used;
    std::uint64_t trace_id = 0;  // if it is traced; last, because other requests do not touch it

    offpath::Status seen() const {
        return static_cast<offpath::Status>(result.load(std::memory_order_acquire));
    }
};

namespace offpath::client {

class RequestTable {
  public:
    explicit RequestTable(control::ClientChannel& channel);

    // A request with a slot whose word is cleared; null while all slots are in use.
    offpath_request* start(offpath_context* context);
    // A request that is already finished and was never started.
    offpath_request* finished(offpath_context* context, Status status);
    // Undoes start() when the command could not be posted.
    void undo(offpath_request* request);

    // Whether the proxy has not completed it yet. If another thread has taken its completion, its slot may be
    // the next operation's. Any thread.
    bool pending(const offpath_request& request) const {
        return request.seen() == Status::in_progress &&
               channel_.completion(request.slot).word.load(std::memory_order_acquire) == 0;
    }
    // Whether it has ended without an error, and take() has not been called since. Under the lock.
    bool succeeds(const offpath_request& request) const {
        return request.seen() == Status::in_progress &&
               channel_.completion(request.slot).word.load(std::memory_order_acquire) ==
                   control::completion_word(Status::ok);
    }
    // Makes a part of the request's shared copy, if there is one to make. Returns whether it has.
    bool help(offpath_request& request);
    // Whether it may make one later. Any thread that waits for the request.
    bool may_help(const offpath_request& request) const {
        return request.shared.bytes > 0 &&
               shared_parts::left(channel_.completion(request.slot).parts, request.shared.bytes);
    }
    // Processes the completion if it is there. Returns whether the request is finished now.
    bool take(offpath_request* request);
    // The caller gives the handle back.
    void free(offpath_request* request);
    // Processes all new completions. Returns how many operations are still outstanding.
    std::uint32_t sweep();
    // Ends every outstanding operation with `status`, unless it has ended already.
    std::uint32_t fail_all(Status status);

    template <typename Visit>
    void for_each_outstanding(Visit&& visit) {
        for (offpath_request* owner : owners_)
            if (owner != nullptr) visit(*owner);
    }

    std::uint64_t completed() const { return completed_; }
    // Bytes of shared copies that this process has copied.
    std::uint64_t copied() const { return copied_; }
    std::uint64_t failed() const { return failed_; }

  private:
    offpath_request* fresh(offpath_context* context);
    static void uncount(offpath_request& request, Status status);

    control::ClientChannel& channel_;
    std::deque<offpath_request> pool_;
    std::vector<offpath_request*> free_requests_;
    std::vector<offpath_request*> owners_;  // by slot
    std::vector<std::uint32_t> free_slots_;
    std::uint64_t completed_ = 0, failed_ = 0, copied_ = 0;
};

}  // namespace offpath::client
