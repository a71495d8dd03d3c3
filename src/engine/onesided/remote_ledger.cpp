#include "engine/onesided/remote_ledger.h"

#include <utility>

namespace offpath::engine {

RemoteLedger::RemoteLedger(memory::HostMemory& memory, const memory::HostRange& words, std::size_t ranks,
                           std::function<void()> settled)
    : memory_(memory), words_(words), ranks_(ranks), settled_(std::move(settled)), values_(1 + 2 * ranks) {}

Status RemoteLedger::begin(std::size_t rank, std::uint64_t bytes, Completion* then) {
    return set(1 + rank, values_[1 + rank] + bytes, then);
}

void RemoteLedger::take_back(std::size_t rank, std::uint64_t bytes) {
    set(1 + rank, values_[1 + rank] - bytes, nullptr);
}

void RemoteLedger::end(std::size_t rank, std::uint64_t bytes) {
    set(1 + ranks_ + rank, values_[1 + ranks_ + rank] + bytes, nullptr);
}

// Each transfer has a copy of its value: a later one may change the word while this one is under way.
Status RemoteLedger::set(std::size_t at, std::uint64_t value, Completion* then) {
    if (free_.empty()) {
        Note& made = notes_.emplace_back();
        made.function = &RemoteLedger::on_written;
        made.home = this;
        free_.push_back(&made);
    }
    Note& note = *free_.back();
    note.then = then;
    note.value = values_[at] = value;
    const Status status = memory_.write(words_, at * sizeof value, &note.value, sizeof note.value, &note);
    if (status != Status::in_progress) return status;
    free_.pop_back();
    ++outstanding_;
    return status;
}

void RemoteLedger::on_written(Completion* self, Status status) {
    Note& note = *static_cast<Note*>(self);
    RemoteLedger& home = *note.home;
    Completion* const then = note.then;
    home.free_.push_back(&note);
    const bool last = --home.outstanding_ == 0;
    if (then != nullptr) (*then)(status);
    if (last) home.settled_();
}

}  // namespace offpath::engine
