#include "rma/epochs.h"

namespace offpath::rma {

std::uint64_t Epochs::start() {
    if (entries_.empty() || !entries_.back().flushes.empty()) entries_.emplace_back();
    ++entries_.back().outstanding;
    return first_ + entries_.size() - 1;
}

void Epochs::end(std::uint64_t epoch, Status status, std::vector<Flush*>& over) {
    Entry& entry = entries_[epoch - first_];
    --entry.outstanding;
    if (is_error(status) && entry.status == Status::ok) entry.status = status;
    while (!entries_.empty() && entries_.front().outstanding == 0) {
        Entry& front = entries_.front();
        // An epoch that no flush has closed stays, so that the next flush reports its error.
        if (front.flushes.empty() && front.status != Status::ok) return;
        for (Flush* flush : front.flushes) {
            if (flush->status == Status::ok) flush->status = front.status;
            if (--flush->left == 0) over.push_back(flush);
        }
        entries_.pop_front();
        ++first_;
    }
}

void Epochs::flush(Flush& flush) {
    if (entries_.empty()) return;
    Entry& last = entries_.back();
    if (entries_.size() == 1 && last.outstanding == 0) {
        if (flush.status == Status::ok) flush.status = last.status;
        entries_.pop_front();
        ++first_;
        return;
    }
    last.flushes.push_back(&flush);
    ++flush.left;
}

}  // namespace offpath::rma
