#include "message_numbers.h"

namespace offpath::mpi::p2p {

MessageNumbers::Entry* MessageNumbers::find(std::uint64_t key) {
    if (entries_.empty()) entries_.resize(64);
    if (entries_[latest_].key == key) return &entries_[latest_];
    const std::size_t mask = entries_.size() - 1;
    for (std::size_t at = (key * 0x9E3779B97F4A7C15U) >> 32 & mask;; at = (at + 1) & mask) {
        Entry& entry = entries_[at];
        if (entry.key != key && entry.key != 0) continue;
        if (entry.key == key) latest_ = at;
        return &entry;
    }
}

void MessageNumbers::grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    latest_ = 0;
    for (const Entry& entry : old) {
        if (entry.key != 0) *find(entry.key) = entry;
    }
}

std::optional<std::uint32_t> MessageNumbers::next_of_other(std::uint64_t key) {
    Entry* entry = find(key);
    if (entry->key == 0) {
        if (used_ >= most_entries) return std::nullopt;
        if (++used_ * 2 > entries_.size()) {
            grow();
            entry = find(key);
        }
        entry->key = key;
    }
    return entry->count++;
}

void MessageNumbers::undo(int peer, int tag) {
    Entry* entry = find(key_of(peer, tag));
    if (entry->key != 0) --entry->count;
}

}  // namespace offpath::mpi::p2p
