#include "memory/shared_staged_transfers.h"

#include "base/log.h"
#include "memory/copy.h"

#include <algorithm>

namespace offpath::memory {

Status SharedStagedTransfers::create(std::uint32_t slots, std::uint32_t slot_bytes,
                                     std::unique_ptr<StagedTransfers>& made, StagingFiles& for_client) {
    std::unique_ptr<SharedStagedTransfers> fresh(new SharedStagedTransfers);
    const Status status = StagingArea::create(slots, slot_bytes, fresh->area_, fresh->bell_, for_client);
    if (status != Status::ok) return status;
    fresh->chunks_.resize(slots);
    for (std::uint32_t slot = slots; slot > 0; --slot)
        fresh->free_slots_.push_back(static_cast<std::uint16_t>(slot - 1));
    made = std::move(fresh);
    return Status::ok;
}

Status SharedStagedTransfers::start(StagingDirection direction, std::uint64_t host_address, std::byte* local,
                                    std::size_t bytes, Completion* completion) {
    if (stopped_ != Status::ok) return stopped_;
    if (stock_.empty()) {
        transfers_.push_back(std::make_unique<Transfer>());
        stock_.push_back(transfers_.back().get());
    }
    Transfer* const transfer = stock_.back();
    stock_.pop_back();
    *transfer = Transfer{direction, host_address, local, bytes, 0, 0, Status::ok, completion};
    ++live_;
    (direction == StagingDirection::to_device ? to_device_ : to_host_).push_back(transfer);
    issue();
    return Status::in_progress;
}

unsigned SharedStagedTransfers::progress() {
    if (armed_) disarm();
    if (live_ == 0) return 0;
    unsigned moved = 0;
    StagingAnswer answer;
    while (health_ == Status::ok && moved < area_.slots()) {
        const Status status = area_.take(answer);
        if (status == Status::retry) break;
        if (status != Status::ok || !accept(answer)) {
            log::error("staging: the client's answers make no sense; its transfers end here");
            health_ = Status::protocol;
            abandon(Status::protocol);
            return moved + 1;
        }
        ++moved;
        issue();
    }
    call_finished();
    return moved;
}

// False: no such chunk is in flight.
bool SharedStagedTransfers::accept(const StagingAnswer& answer) {
    if (answer.slot >= chunks_.size() || chunks_[answer.slot].transfer == nullptr) return false;
    Chunk& chunk = chunks_[answer.slot];
    Transfer* const transfer = chunk.transfer;
    const auto status = static_cast<Status>(answer.status);
    if (status != Status::ok) {
        if (transfer->status == Status::ok) transfer->status = is_error(status) ? status : Status::protocol;
    } else if (transfer->direction == StagingDirection::to_device && transfer->status == Status::ok) {
        copy_bytes(transfer->local + chunk.offset, area_.slot(answer.slot), chunk.bytes);
    }
    chunk.transfer = nullptr;
    free_slots_.push_back(answer.slot);
    --transfer->in_flight;
    retire_if_over(transfer);
    return true;
}

void SharedStagedTransfers::issue() {
    bool posted = false;
    while (!free_slots_.empty() && (!to_device_.empty() || !to_host_.empty())) {
        host_turn_ = !host_turn_;
        Queue& preferred = host_turn_ ? to_host_ : to_device_;
        Queue& other = host_turn_ ? to_device_ : to_host_;
        posted |= issue_from(preferred.empty() ? other : preferred);
    }
    if (posted && area_.agent_must_be_woken()) ring(bell_.get());
}

bool SharedStagedTransfers::issue_from(Queue& queue) {
    Transfer* const transfer = queue.front();
    if (transfer->status != Status::ok || transfer->issued == transfer->bytes) {
        queue.pop_front();
        retire_if_over(transfer);
        return false;
    }
    const std::uint16_t slot = free_slots_.back();
    free_slots_.pop_back();
    const auto bytes = static_cast<std::uint32_t>(
        std::min<std::size_t>(transfer->bytes - transfer->issued, area_.slot_bytes()));
    chunks_[slot] = Chunk{transfer, transfer->issued, bytes};
    if (transfer->direction == StagingDirection::to_host)
        copy_bytes(area_.slot(slot), transfer->local + transfer->issued, bytes);
    area_.post(StagingRequest{transfer->host_address + transfer->issued, bytes, slot, transfer->direction});
    transfer->issued += bytes;
    ++transfer->in_flight;
    if (transfer->issued == transfer->bytes) queue.pop_front();
    return true;
}

// A transfer is over when no chunk of it is in flight and it is in no queue.
void SharedStagedTransfers::retire_if_over(Transfer* transfer) {
    if (transfer->in_flight > 0) return;
    if (transfer->issued < transfer->bytes) {
        if (transfer->status == Status::ok) return;
        Queue& queue = transfer->direction == StagingDirection::to_device ? to_device_ : to_host_;
        std::erase(queue, transfer);
        transfer->issued = transfer->bytes;
    }
    finished_.push_back(transfer);
}

void SharedStagedTransfers::call_finished() {
    while (!finished_.empty()) {
        Transfer* const transfer = finished_.back();
        finished_.pop_back();
        Completion* const completion = transfer->completion;
        const Status status = transfer->status;
        stock_.push_back(transfer);
        --live_;
        if (completion != nullptr) (*completion)(status);
    }
}

Status SharedStagedTransfers::arm() {
    armed_ = true;
    if (live_ == 0) return Status::ok;
    area_.proxy_rests(true);
    return area_.has_answers() ? Status::retry : Status::ok;
}

// The agent may ring late, for what was seen without a ring: rings are taken after every rest.
void SharedStagedTransfers::disarm() {
    armed_ = false;
    area_.proxy_rests(false);
    if (!bell_ || silence(bell_.get())) return;
    bell_ = File();  // or it would keep the proxy awake
    if (live_ > 0) {
        log::error("staging: the client's agent has ended with {} transfers to go", live_);
        health_ = Status::peer_lost;
    }
    abandon(Status::peer_lost);
}

void SharedStagedTransfers::cancel_queued(Status reason) {
    for (Queue* queue : {&to_device_, &to_host_}) {
        for (Transfer* const transfer : *queue) {
            transfer->status = reason;
            transfer->issued = transfer->bytes;
            if (transfer->in_flight == 0) finished_.push_back(transfer);
        }
        queue->clear();
    }
}

void SharedStagedTransfers::stop(Status reason) {
    if (stopped_ == Status::ok) stopped_ = reason;
    cancel_queued(reason);
    call_finished();
}

void SharedStagedTransfers::abandon(Status reason) {
    if (stopped_ == Status::ok) stopped_ = reason;
    cancel_queued(reason);
    for (Chunk& chunk : chunks_) {
        Transfer* const transfer = std::exchange(chunk.transfer, nullptr);
        if (transfer == nullptr) continue;
        transfer->status = reason;
        if (--transfer->in_flight == 0) finished_.push_back(transfer);
    }
    free_slots_.clear();
    call_finished();
}

}  // namespace offpath::memory
