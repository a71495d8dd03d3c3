#include "copied_sends.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>

#include "runtime/backoff.h"
#include "runtime/parts.h"
#include "runtime/runtime.h"

namespace offpath::mpi::devices {
namespace {

constexpr std::size_t most_sends = 256;

struct CopiedSend {
    offpath_request_h request;
    std::unique_ptr<std::byte[]> copy;
};
std::mutex sends_mutex;
std::deque<CopiedSend> sends;

// Needs sends_mutex. How many are left.
std::size_t sweep() {
    std::erase_if(sends, [](const CopiedSend& send) {
        const offpath_status_t status = offpath_request_test(send.request);
        if (status == OFFPATH_IN_PROGRESS) return false;
        if (status != OFFPATH_OK)
            warn(Code::device_lost, fmt::format("rank {}: a message to a device was lost: {}", runtime().rank,
                                                offpath_status_string(status)));
        offpath_request_free(send.request);
        return true;
    });
    return sends.size();
}

}  // namespace

void keep_copied_send(offpath_request_h request, std::unique_ptr<std::byte[]> copy) {
    std::unique_lock lock(sends_mutex);
    sends.push_back({request, std::move(copy)});
    if (sends.size() <= most_sends / 2) return;
    for (Backoff backoff; sweep() > most_sends;) {
        lock.unlock();
        progress_parts();
        backoff.pause();
        lock.lock();
    }
}

std::size_t left_copied_sends() {
    const std::lock_guard lock(sends_mutex);
    return sweep();
}

}  // namespace offpath::mpi::devices
