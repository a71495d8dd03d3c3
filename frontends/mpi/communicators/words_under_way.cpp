#include "words_under_way.h"

#include <mutex>
#include <vector>

#include "runtime/outstanding_counts.h"

namespace offpath::mpi {
namespace {

std::mutex under_way_mutex;
std::vector<UnderWay*> all_under_way;

void count(bool more) {
    if (more) {
        words_under_way.fetch_add(1, std::memory_order_relaxed);
        outstanding.requests.raise();
    } else {
        words_under_way.fetch_sub(1, std::memory_order_relaxed);
        outstanding.requests.lower();
    }
}

}  // namespace

UnderWay::UnderWay(CombinedWords& words) : words_(words) {
    const std::lock_guard lock(under_way_mutex);
    count(true);
    if (!advance_locked()) all_under_way.push_back(this);
}

UnderWay::~UnderWay() {
    const std::lock_guard lock(under_way_mutex);
    if (ended_) return;
    std::erase(all_under_way, this);
    count(false);
}

bool UnderWay::advance_locked() {
    if (ended_) return true;
    ended_ = words_.advance();
    if (ended_) count(false);
    return ended_;
}

bool UnderWay::advance() {
    const std::lock_guard lock(under_way_mutex);
    if (ended_) return true;
    if (advance_locked()) std::erase(all_under_way, this);
    return ended_;
}

void advance_words_under_way() {
    const std::unique_lock lock(under_way_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    std::erase_if(all_under_way, [](UnderWay* one) { return one->advance_locked(); });
}

}  // namespace offpath::mpi
