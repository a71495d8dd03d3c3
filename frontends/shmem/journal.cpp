#include "journal.h"

#include <utility>

namespace offpath::shmem {

Journal journal;

void Journal::open(int pes) {
    marks_.assign(static_cast<std::size_t>(pes), 0);
    list_.reserve(most);
    on_ = true;
}

void Journal::close() {
    clear();
    on_ = false;
}

void Journal::keep_bytes() {
    Unfinished& one = list_.back();
    if (one.owned) return;
    const auto* const source = static_cast<const std::byte*>(one.source);
    one.at = bytes_.size();
    bytes_.insert(bytes_.end(), source, source + one.bytes);
    one.owned = true;
}

std::vector<Unfinished> Journal::take_all() {
    return std::exchange(list_, {});
}

}  // namespace offpath::shmem
