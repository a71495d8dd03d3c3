#include "memory/staged_queue.h"

namespace offpath::memory {

Status StagedQueue::start(const StagedTransfer& transfer) {
    if (stopped_ != Status::ok) return stopped_;
    if (stock_.empty()) stock_.push_back(&transfers_.emplace_back());
    StagedTransfer* const made = stock_.back();
    stock_.pop_back();
    *made = transfer;
    ++live_;
    if (made->bytes > 0) waiting(made->direction).push_back(made);
    retire_if_over(*made);
    return Status::in_progress;
}

StagedTransfer* StagedQueue::next(StagingDirection direction) const {
    const auto& waiting = waiting_[static_cast<std::size_t>(direction) - 1];
    return waiting.empty() ? nullptr : waiting.front();
}

void StagedQueue::issue(StagedTransfer& transfer, std::size_t bytes) {
    transfer.issued += bytes;
    ++transfer.pieces;
    if (transfer.left() == 0) waiting(transfer.direction).pop_front();
}

void StagedQueue::piece_over(StagedTransfer& transfer) {
    --transfer.pieces;
    retire_if_over(transfer);
}

void StagedQueue::fail(StagedTransfer& transfer, Status status) {
    if (transfer.status == Status::ok) transfer.status = is_error(status) ? status : Status::protocol;
    if (transfer.left() == 0) return;
    std::erase(waiting(transfer.direction), &transfer);
    transfer.issued = transfer.bytes;
}

void StagedQueue::retire_if_over(StagedTransfer& transfer) {
    if (transfer.pieces == 0 && transfer.left() == 0) finished_.push_back(&transfer);
}

void StagedQueue::stop(Status reason) {
    if (stopped_ == Status::ok) stopped_ = reason;
    for (auto& waiting : waiting_) {
        while (!waiting.empty()) {
            StagedTransfer& transfer = *waiting.front();
            fail(transfer, reason);
            retire_if_over(transfer);
        }
    }
}

void StagedQueue::call_finished() {
    while (!finished_.empty()) {
        StagedTransfer* const transfer = finished_.back();
        finished_.pop_back();
        Completion* const completion = transfer->completion;
        const Status status = transfer->status;
        stock_.push_back(transfer);
        --live_;
        if (completion != nullptr) (*completion)(status);
    }
}

}  // namespace offpath::memory
