#include "waits.h"

#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "lock.h"
#include "pairs.h"
#include "parcel.h"
#include "runtime.h"

namespace offpath::mpi::p2p {
namespace {

// From a receiver to its sender.
struct Notice {
    std::uint64_t pairs = 0;
    std::int32_t receiver = 0, tag = 0;  // in the communicator
    std::uint32_t only_waits = 0, unused = 0;
};
static_assert(sizeof(Notice) == 24);

struct Told {
    Notice notice;
    MPI_Request request = MPI_REQUEST_NULL;
};

std::unordered_map<std::uint64_t, Pairs*> watched;
std::deque<Told> telling;            // a deque: their addresses stay
std::vector<std::uint32_t> told_to;  // how many notices, by rank of the world
std::uint32_t heard = 0;
std::uint64_t posts = 0;

// No payload has it.
int notice_tag() {
    return payload_tags();
}

std::uint64_t key_of(int peer, int tag) {
    return std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | static_cast<std::uint32_t>(tag);
}

template <typename Watch>
Watch* find(std::unordered_map<std::uint64_t, Watch>& watches, int peer, int tag) {
    const auto found = watches.find(key_of(peer, tag));
    return found == watches.end() ? nullptr : &found->second;
}

// Null: there are too many.
template <typename Watch>
Watch* find_or_make(std::unordered_map<std::uint64_t, Watch>& watches, int peer, int tag) {
    if (watches.size() >= Watches::most) return find(watches, peer, tag);
    return &watches[key_of(peer, tag)];
}

void forget_told() {
    while (!telling.empty()) {
        int flag = 0;
        PMPI_Test(&telling.front().request, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) return;
        telling.pop_front();
    }
}

void tell(const Parcel& parcel, Watches::Received& watch) {
    if (watch.told == watch.habit.only_waits()) return;
    watch.told = watch.habit.only_waits();
    forget_told();
    const int sender = parcel.pairs->world(parcel.peer);
    Told& told = telling.emplace_back();
    told.notice = {parcel.pairs->id, parcel.pairs->own_rank, parcel.tag, watch.told ? 1U : 0U};
    PMPI_Isend(&told.notice, sizeof told.notice, MPI_BYTE, sender, notice_tag(), payload_comm(),
               &told.request);
    ++told_to[static_cast<std::size_t>(sender)];
}

bool hear_one() {
    int flag = 0;
    MPI_Status status;
    PMPI_Iprobe(MPI_ANY_SOURCE, notice_tag(), payload_comm(), &flag, &status);
    if (flag == 0) return false;
    Notice notice;
    PMPI_Recv(&notice, sizeof notice, MPI_BYTE, status.MPI_SOURCE, notice_tag(), payload_comm(),
              MPI_STATUS_IGNORE);
    ++heard;
    const auto found = watched.find(notice.pairs);
    if (found == watched.end()) return true;  // its communicator is gone
    if (Watches::Sent* watch = find(found->second->watches.sent, notice.receiver, notice.tag))
        watch->receiver_only_waits = notice.only_waits != 0;
    return true;
}

void receive_ended(Parcel& parcel, bool only_waited, std::uint64_t elapsed_ns) {
    const bool by_host = !parcel.by_header;
    if (parcel.announced < runtime().settings.p2p.min_bytes || !parcel.pairs->takes_part(parcel.peer)) return;
    Watches::Received* watch = find_or_make(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr) return;
    watch->latest_by_host = by_host;
    if (parcel.judged) return;
    if (only_waited) watch->usual_ns = elapsed_ns;
    watch->habit.add(only_waited);
    tell(parcel, *watch);
}

}  // namespace

bool watches_waits() {
    return runtime().settings.p2p.waited_by_host != 0 && !runtime().threads;
}

void open_waits() {
    told_to.assign(static_cast<std::size_t>(runtime().size), 0);
}

void close_waits() {
    if (runtime().settings.p2p.waited_by_host == 0) return;
    // What was told is to be heard before the communicator goes.
    std::uint32_t expected = 0;
    PMPI_Reduce_scatter_block(told_to.data(), &expected, 1, MPI_UINT32_T, MPI_SUM, runtime().service);
    while (heard != expected)
        hear_one();
    for (Told& told : telling)
        PMPI_Wait(&told.request, MPI_STATUS_IGNORE);
    telling.clear();
}

void begin_watching(Pairs& pairs) {
    watched[pairs.id] = &pairs;
}

void end_watching(Pairs& pairs) {
    watched.erase(pairs.id);
}

bool is_only_waited_for(Pairs& pairs, int peer, int tag, std::size_t bytes) {
    if (bytes > most_bytes_by_host || large_under_way.load(std::memory_order_relaxed) != 0) return false;
    const Watches::Sent* watch = find(pairs.watches.sent, peer, tag);
    if (watch == nullptr || !watch->habit.only_waits()) return false;
    while (hear_one()) {
    }
    return watch->receiver_only_waits;
}

bool will_come_by_host(const Parcel& parcel) {
    if (large_under_way.load(std::memory_order_relaxed) != 0) return false;
    const Watches::Received* watch = find(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    return watch != nullptr && watch->told && watch->latest_by_host;
}

void posted(Parcel& parcel) {
    if (!watches_waits()) return;
    parcel.watched = true;
    parcel.alone = large_under_way.fetch_add(1, std::memory_order_relaxed) == 0;
    parcel.post = ++posts;
    parcel.posted_ns = parcel.left_ns = SteadyClock().now_ns();
}

void stay(Parcel& parcel) {
    parcel.left_ns = 0;
}

void look_at(Parcel& parcel) {
    if (!parcel.watched || parcel.left_ns == 0) return;
    parcel.outside_ns += SteadyClock().now_ns() - parcel.left_ns;
    parcel.left_ns = 0;
    if (!parcel.receives || parcel.wild || parcel.judged) return;
    // The sender had better know of it before its next message than after this one.
    Watches::Received* watch = find(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr || !watch->told || !has_computed(parcel.outside_ns, watch->usual_ns)) return;
    parcel.judged = true;
    watch->habit.add(false);
    tell(parcel, *watch);
}

void leave(Parcel& parcel) {
    if (parcel.watched) parcel.left_ns = SteadyClock().now_ns();
}

void ended(Parcel& parcel) {
    if (!parcel.watched) return;
    parcel.watched = false;
    large_under_way.fetch_sub(1, std::memory_order_relaxed);
    if (parcel.error != MPI_SUCCESS) return;
    const std::uint64_t elapsed_ns = SteadyClock().now_ns() - parcel.posted_ns;
    // Where nobody has looked at it, who knows.
    const bool only_waited = parcel.alone && parcel.post == posts && parcel.left_ns == 0 &&
                             !parcel.any_source_or_tag && !has_computed(parcel.outside_ns, elapsed_ns);
    if (parcel.receives) return receive_ended(parcel, only_waited, elapsed_ns);
    if (Watches::Sent* watch = find_or_make(parcel.pairs->watches.sent, parcel.peer, parcel.tag))
        watch->habit.add(only_waited);
}

void Look::enter() {
    if (requests_ == nullptr) return;
    entered_ = true;
    const auto guard = lock();
    for (int i = 0; i < count_; ++i) {
        if (Parcel* parcel = find_parcel(requests_[i])) look_at(*parcel);
    }
}

void Look::leave_rest() {
    const auto guard = lock();
    for (int i = 0; i < count_; ++i) {
        if (Parcel* parcel = find_parcel(requests_[i])) leave(*parcel);
    }
}

}  // namespace offpath::mpi::p2p
