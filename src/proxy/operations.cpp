// Session's operations: from the slot that a command names to the completion word that the client sees.
#include "base/log.h"
#include "proxy/session.h"

namespace offpath::proxy {

bool Session::check_slot(std::uint32_t slot) {
    if (slot < channel_->completions() && outstanding_ < channel_->completions()) return true;
    problem_ = fmt::format("completion {} with {} operations outstanding; {} are accepted", slot,
                           outstanding_, channel_->completions());
    return false;
}

Session::ClientOperation& Session::take_operation(std::uint32_t slot) {
    if (free_operations_.empty()) free_operations_.push_back(&operations_.emplace_back());
    ClientOperation& operation = *free_operations_.back();
    free_operations_.pop_back();
    operation.function = &Session::on_done;
    operation.session = this;
    operation.schedule = nullptr;
    operation.slot = slot;
    operation.receives = false;
    operation.traced = 0;
    operation.message = {};
    ++(slot == control::no_completion ? unwatched_ : outstanding_);
    ++started_;
    return operation;
}

bool Session::pin(ClientOperation& operation, const memory::HostRange& range) {
    if (range.bytes == 0) return true;
    const Status status = memory_->pin(range);
    if (status == Status::ok) {
        operation.pinned.push_back(range);
        return true;
    }
    log::error(Code::region, "{}: {} bytes at {:#x} of region {} cannot be used: {}", name_, range.bytes,
               range.address, range.region, to_string(status));
    return false;
}

void Session::on_done(Completion* completion, Status status) {
    ClientOperation& operation = *static_cast<ClientOperation*>(completion);
    operation.session->settle(operation, status);
}

void Session::begin_trace(ClientOperation& operation, trace::Name& name, std::uint64_t bytes,
                          std::uint64_t id) const {
    operation.traced = id;
    trace::begin(trace::Kind::operation, operation.traced, bytes, job_rank_, name.number());
}

void Session::settle(ClientOperation& operation, Status status) {
    if (operation.traced != 0) [[unlikely]]
        trace::end(trace::Kind::operation, operation.traced);
    for (const memory::HostRange& range : operation.pinned)
        memory_->unpin(range);
    operation.pinned.clear();
    if (operation.schedule != nullptr) schedules_.release(*operation.schedule);
    if (operation.slot == control::no_completion) {
        --unwatched_;
        completed_some_ |= !revoking_.empty();
        free_operations_.push_back(&operation);
        return;
    }
    // The client may reuse the slot as soon as it sees the word.
    if (operation.receives) {
        channel_->complete(operation.slot, status, operation.message.source, operation.message.tag,
                           operation.message.bytes);
    } else {
        channel_->complete(operation.slot, status);
    }
    --outstanding_;
    completed_some_ = true;
    free_operations_.push_back(&operation);
}

}  // namespace offpath::proxy
