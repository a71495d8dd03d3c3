#include "engine/onesided/remote_ledger.h"

#include <utility>

namespace offpath::engine {

RemoteLedger::RemoteLedger(memory::HostMemory& memory, const memory::HostRange& words, std::size_t ranks,
                           std::function<void()> settled)
    : memory_(memory), range_(words), ranks_(ranks), settled_(std::move(settled)), words_(1 + 2 * ranks) {
    for (Word& word : words_) {
        word.function = &RemoteLedger::on_written;
        word.home = this;
    }
}

void RemoteLedger::close() {
    closes_ = true;
    words_[0].value = 1;
    if (outstanding_ == 0 && words_[0].sent == 0) (void)write(words_[0]);
}

Status RemoteLedger::begin(std::size_t rank, std::uint64_t bytes, Completion& then) {
    Word& word = words_[1 + rank];
    word.value += bytes;
    word.then = &then;
    const Status status = write(word);
    if (status != Status::in_progress) word.then = nullptr;
    return status;
}

void RemoteLedger::take_back(std::size_t rank, std::uint64_t bytes) {
    words_[1 + rank].value -= bytes;
    (void)write(words_[1 + rank]);
}

void RemoteLedger::end(std::size_t rank, std::uint64_t bytes) {
    words_[1 + ranks_ + rank].value += bytes;
    (void)write(words_[1 + ranks_ + rank]);
}

Status RemoteLedger::write(Word& word) {
    if (word.under_way) return Status::in_progress;
    word.sent = word.value;
    const auto at = static_cast<std::uint64_t>(&word - words_.data());
    const Status status = memory_.write(range_, at * sizeof word.sent, &word.sent, sizeof word.sent, &word);
    if (status != Status::in_progress) return status;
    word.under_way = true;
    ++outstanding_;
    return status;
}

void RemoteLedger::on_written(Completion* self, Status status) {
    Word& word = *static_cast<Word*>(self);
    RemoteLedger& home = *word.home;
    word.under_way = false;
    --home.outstanding_;
    const bool more = !is_error(status) && word.sent != word.value && home.write(word) == Status::in_progress;
    if (!more) {
        if (Completion* const then = std::exchange(word.then, nullptr)) (*then)(status);
    }
    if (home.outstanding_ > 0) return;
    Word& closed = home.words_[0];
    if (home.closes_ && closed.sent == 0 && !is_error(status) && home.write(closed) == Status::in_progress)
        return;
    home.settled_();
}

}  // namespace offpath::engine
