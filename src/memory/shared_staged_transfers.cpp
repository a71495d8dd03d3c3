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
    const Status status = queue_.start({direction, host_address, local, bytes, completion});
    if (status == Status::in_progress) issue();
    return status;
}

unsigned SharedStagedTransfers::progress() {
    if (armed_) disarm();
    if (queue_.live() == 0) return 0;
    unsigned moved = 0;
    StagingAnswer answer;
    while (health_ == Status::ok && moved < area_.slots()) {
        const Status status = area_.take(answer);
        if (status == Status::retry) break;
        if (status != Status::ok || !accept(answer)) {
            log::error(Code::malformed,
                       "staging: the client's answers make no sense; its transfers end here");
            health_ = Status::protocol;
            abandon(Status::protocol);
            return moved + 1;
        }
        ++moved;
        issue();
    }
    queue_.call_finished();
    return moved;
}

// False: no such chunk is in flight.
bool SharedStagedTransfers::accept(const StagingAnswer& answer) {
    if (answer.slot >= chunks_.size() || chunks_[answer.slot].transfer == nullptr) return false;
    Chunk& chunk = chunks_[answer.slot];
    StagedTransfer& transfer = *chunk.transfer;
    const auto status = static_cast<Status>(answer.status);
    if (status != Status::ok) {
        queue_.fail(transfer, status);
    } else if (transfer.direction == StagingDirection::to_device && transfer.status == Status::ok) {
        copy_bytes(transfer.local + chunk.offset, area_.slot(answer.slot), chunk.bytes);
    }
    chunk.transfer = nullptr;
    free_slots_.push_back(answer.slot);
    queue_.piece_over(transfer);
    return true;
}

void SharedStagedTransfers::issue() {
    bool posted = false;
    for (; !free_slots_.empty(); posted = true) {
        host_turn_ = !host_turn_;
        StagedTransfer* const to_device = queue_.next(StagingDirection::to_device);
        StagedTransfer* const to_host = queue_.next(StagingDirection::to_host);
        StagedTransfer* const preferred = host_turn_ ? to_host : to_device;
        StagedTransfer* const chosen = preferred != nullptr ? preferred : host_turn_ ? to_device : to_host;
        if (chosen == nullptr) break;
        issue_from(*chosen);
    }
    if (posted && area_.agent_must_be_woken()) ring(bell_.get());
}

void SharedStagedTransfers::issue_from(StagedTransfer& transfer) {
    const std::uint16_t slot = free_slots_.back();
    free_slots_.pop_back();
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(transfer.left(), area_.slot_bytes()));
    chunks_[slot] = Chunk{&transfer, transfer.issued, bytes};
    if (transfer.direction == StagingDirection::to_host)
        copy_bytes(area_.slot(slot), transfer.local + transfer.issued, bytes);
    area_.post(StagingRequest{transfer.host_address + transfer.issued, bytes, slot, transfer.direction});
    queue_.issue(transfer, bytes);
}

Status SharedStagedTransfers::arm() {
    armed_ = true;
    if (queue_.live() == 0) return Status::ok;
    area_.proxy_rests(true);
    return area_.has_answers() ? Status::retry : Status::ok;
}

// The agent may ring late, for an answer that was seen without a ring. So rings are taken after every rest.
void SharedStagedTransfers::disarm() {
    armed_ = false;
    area_.proxy_rests(false);
    if (!bell_ || silence(bell_.get())) return;
    bell_ = File();  // or it would keep the proxy awake
    if (queue_.live() > 0) {
        log::error(Code::host_memory, "staging: the client's agent has ended with {} transfers to go",
                   queue_.live());
        health_ = Status::peer_lost;
    }
    abandon(Status::peer_lost);
}

void SharedStagedTransfers::stop(Status reason) {
    queue_.stop(reason);
    queue_.call_finished();
}

void SharedStagedTransfers::abandon(Status reason) {
    queue_.stop(reason);
    for (Chunk& chunk : chunks_) {
        StagedTransfer* const transfer = std::exchange(chunk.transfer, nullptr);
        if (transfer == nullptr) continue;
        queue_.fail(*transfer, reason);
        queue_.piece_over(*transfer);
    }
    free_slots_.clear();
    queue_.call_finished();
}

}  // namespace offpath::memory
