// The transfers of DeviceStaging, from their start to their completion.
#include "link/device_staging.h"

namespace offpath::link {

using memory::StagingDirection;

Status DeviceStaging::start(StagingDirection direction, std::uint64_t host_address, std::byte* local,
                            std::size_t bytes, Completion* completion) {
    if (stopped_ != Status::ok) return stopped_;
    Transfer* const transfer = transfers_.take();
    *transfer = {direction, host_address, local, 0, bytes, 0, 0, Status::ok, completion};
    ++live_;
    of(*transfer).queue.push_back(transfer);
    return Status::in_progress;
}

Status DeviceStaging::copy(std::uint64_t from, std::uint64_t to, std::size_t bytes, Completion* completion) {
    if (stopped_ != Status::ok) return stopped_;
    if (to == 0) return Status::access;
    Transfer* const transfer = transfers_.take();
    *transfer = {StagingDirection::to_host, from, nullptr, to, bytes, 0, 0, Status::ok, completion};
    ++live_;
    within_.queue.push_back(transfer);
    return Status::in_progress;
}

bool DeviceStaging::has_work() const {
    return !finished_.empty() || (transport_status_ == Status::ok &&
                                  (may_issue(to_device_) || may_issue(to_host_) || may_issue(within_)));
}

unsigned DeviceStaging::progress() {
    const auto finished = static_cast<unsigned>(finished_.size());
    call_finished();
    if (transport_status_ != Status::ok) return finished;
    return finished + issue_fetches() + issue_stores() + issue_copies();
}

void DeviceStaging::transport_failed(Status status) {
    if (transport_status_ == Status::ok) transport_status_ = status;
}

// What is not on its way yet stays here.
void DeviceStaging::fail(Transfer& transfer, Status status) {
    if (transfer.status == Status::ok) transfer.status = is_error(status) ? status : Status::protocol;
    if (transfer.issued == transfer.bytes) return;
    std::erase(of(transfer).queue, &transfer);
    transfer.issued = transfer.bytes;
}

void DeviceStaging::retire_if_over(Transfer* transfer) {
    if (transfer->open == 0 && transfer->issued == transfer->bytes) finished_.push_back(transfer);
}

void DeviceStaging::call_finished() {
    while (!finished_.empty()) {
        Transfer* const transfer = finished_.back();
        finished_.pop_back();
        Completion* const completion = transfer->completion;
        const Status status = transfer->status;
        transfers_.give_back(transfer);
        --live_;
        if (completion != nullptr) (*completion)(status);
    }
}

void DeviceStaging::cancel_queued(Status reason) {
    for (Direction* direction : {&to_device_, &to_host_, &within_}) {
        while (!direction->queue.empty()) {
            Transfer* const transfer = direction->queue.front();
            fail(*transfer, reason);
            retire_if_over(transfer);
        }
    }
}

void DeviceStaging::stop(Status reason) {
    if (stopped_ == Status::ok) stopped_ = reason;
    cancel_queued(reason);
    call_finished();
}

void DeviceStaging::abandon(Status reason) {
    if (stopped_ == Status::ok) stopped_ = reason;
    cancel_queued(reason);
    for (Request& request : requests_) {
        Transfer* const transfer = request.transfer;
        if (transfer == nullptr) continue;
        // Not given back: the transport may hold it still.
        request.transfer = nullptr;
        request.awaited = 0;
        fail(*transfer, reason);
        if (--transfer->open == 0) finished_.push_back(transfer);
    }
    call_finished();
}

}  // namespace offpath::link
