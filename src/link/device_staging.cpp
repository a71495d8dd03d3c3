// The transfers of DeviceStaging. Its requests are in device_requests.cpp.
#include "link/device_staging.h"

#include <utility>

namespace offpath::link {

using memory::StagingDirection;

Status DeviceStaging::start(StagingDirection direction, std::uint64_t host_address, std::byte* local,
                            std::size_t bytes, Completion* completion) {
    return queue_.start({direction, host_address, local, bytes, completion});
}

Status DeviceStaging::copy(std::uint64_t from, std::uint64_t to, std::size_t bytes, Completion* completion) {
    return queue_.start({StagingDirection::within_host, from, nullptr, bytes, completion, to});
}

bool DeviceStaging::has_work() const {
    if (queue_.finished() > 0) return true;
    return transport_status_ == Status::ok &&
           (next(StagingDirection::to_device) != nullptr || next(StagingDirection::to_host) != nullptr ||
            next(StagingDirection::within_host) != nullptr);
}

unsigned DeviceStaging::progress() {
    const auto finished = static_cast<unsigned>(queue_.finished());
    queue_.call_finished();
    if (transport_status_ != Status::ok) return finished;
    return finished + issue_fetches() + issue_stores() + issue_copies();
}

void DeviceStaging::transport_failed(Status status) {
    if (transport_status_ == Status::ok) transport_status_ = status;
}

void DeviceStaging::stop(Status reason) {
    queue_.stop(reason);
    queue_.call_finished();
}

void DeviceStaging::abandon(Status reason) {
    queue_.stop(reason);
    for (StagedRequest& request : requests_) {
        if (request.transfer == nullptr) continue;
        // The request is not given back, because the transport may still hold it.
        memory::StagedTransfer& transfer = *std::exchange(request.transfer, nullptr);
        request.awaited = 0;
        queue_.fail(transfer, reason);
        queue_.piece_over(transfer);
    }
    queue_.call_finished();
}

}  // namespace offpath::link
