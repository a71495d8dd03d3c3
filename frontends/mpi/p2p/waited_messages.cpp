#include "waited_messages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "communicator_state.h"
#include "end_notices.h"
#include "lock.h"
#include "outstanding.h"
#include "parcel.h"
#include "runtime/runtime.h"
#include "settings.h"
#include "shared_buffers.h"

namespace offpath::mpi::p2p {
namespace {

std::unordered_map<std::uint64_t, Pairs*> watched;
std::uint64_t in_calls_ns = 0;  // time in calls while large messages were outstanding
std::uint64_t call_began_ns = 0;
std::uint32_t calls_entered = 0;

// Lasts from the first large message posted while none is outstanding until all have ended.
struct Exchange {
    enum class By : std::uint8_t { nothing, device, host, both };
    // The most messages. This limits exchanges of programs in which a receive is always pending.
    static constexpr std::uint32_t longest = 256;

    std::uint64_t began_ns = 0;
    std::size_t bytes = 0;
    std::uint32_t messages = 0;
    bool only_waited = true;
    bool is_step = false;  // the program computes beside it, as far as its first send tells
    By by = By::nothing;   // how its messages were sent
    // About the first send:
    std::uint64_t pairs = 0;
    int peer = 0, tag = 0;
    std::size_t size = 0;
};
Exchange exchange;
// For each size, whether the latest finished trial, of any peer and tag, chose the host.
std::array<bool, MessageHistory::sizes> host_won{};

std::size_t size_of(std::size_t bytes) {
    constexpr int smallest = 18;  // bits of 128 KiB
    return static_cast<std::size_t>(std::clamp(static_cast<int>(std::bit_width(bytes)) - smallest, 0,
                                               static_cast<int>(MessageHistory::sizes) - 1));
}

void tell(const Parcel& parcel, MessageHistory::Received& watch) {
    tell_habit(*parcel.pairs, parcel.peer, parcel.tag, watch);
}

void take_in(const EndNotice& notice) {
    const auto found = watched.find(notice.pairs);
    if (found == watched.end()) return;  // its communicator has ended
    Pairs& pairs = *found->second;
    switch (notice.kind) {
        case EndNotice::computes:
        case EndNotice::only_waits:
            if (MessageHistory::Sent* watch = find(pairs.watches.sent, notice.from, notice.tag))
                watch->receiver_only_waits = notice.kind == EndNotice::only_waits;
            return;
        case EndNotice::was_too_short:
            if (MessageHistory::Sent* watch = find_or_make(pairs.watches.sent, notice.from, notice.tag))
                watch->receiver_cuts_off = true;
            return;
        case EndNotice::shares_a_buffer:
            return promise_no_headers(pairs, notice.from, notice.tag);
        case EndNotice::without_headers:
            return no_headers_from(pairs, notice.from, notice.tag, notice.number);
    }
}

void sent_in_exchange(const Parcel& parcel) {
    const Exchange::By by = parcel.by_host ? Exchange::By::host : Exchange::By::device;
    if (exchange.by != Exchange::By::nothing) {
        if (exchange.by != by) exchange.by = Exchange::By::both;
        return;
    }
    exchange.by = by;
    exchange.pairs = parcel.pairs->id;
    exchange.peer = parcel.peer;
    exchange.tag = parcel.tag;
    exchange.size = size_of(parcel.capacity);
    exchange.is_step = !only_waits(*parcel.pairs, parcel.peer, parcel.tag);
}

double cost_of(std::uint64_t elapsed_ns, std::size_t bytes) {
    return static_cast<double>(elapsed_ns) / static_cast<double>(bytes);
}

void exchange_ended() {
    const auto pairs = watched.find(exchange.pairs);
    if (exchange.by == Exchange::By::nothing || pairs == watched.end()) return;
    MessageHistory::Sent* watch = find(pairs->second->watches.sent, exchange.peer, exchange.tag);
    if (watch == nullptr) return;
    watch->was_of_several = exchange.messages > 1;
    if (exchange.by == Exchange::By::both) return;
    const auto engine = exchange.by == Exchange::By::host ? RouteTrial::host : RouteTrial::device;
    const double cost = cost_of(now_ns() - exchange.began_ns, exchange.bytes);
    if (exchange.is_step) return watch->steps[exchange.size].add(engine, cost);
    if (!exchange.only_waited || !watch->was_of_several) return;
    RouteTrial& trial = watch->trials[exchange.size];
    trial.add(engine, cost);
    if (trial.is_decided()) host_won[exchange.size] = trial.faster() == RouteTrial::host;
}

bool host_won_near(std::size_t size) {
    return host_won[size] || (size > 0 && host_won[size - 1]) ||
           (size + 1 < host_won.size() && host_won[size + 1]);
}

// Decides for the first send of an exchange of several messages.
bool host_is_faster(MessageHistory::Sent& watch, std::size_t bytes) {
    const std::size_t size = size_of(bytes);
    RouteTrial& trial = watch.trials[size];
    if (trial.is_new()) {
        if (size > 0 && watch.trials[size - 1].is_settled_on_device()) {
            trial.settle_on_device();
        } else if (host_won_near(size)) {
            trial.follow_host();
            host_won[size] = true;
        }
    }
    return trial.next() == RouteTrial::host;
}

// Whether the next large message with this source and tag comes without a header, as far as this end can
// tell: as the latest one did.
bool may_come_by_host(Pairs& pairs, int peer, int tag) {
    if (job_settings.begins_with_device()) return comes_by_host(pairs, peer, tag);
    const MessageHistory::Received* watch = find(pairs.watches.received, peer, tag);
    return watch == nullptr || watch->latest_by_host;
}

void receive_ended(Parcel& parcel, bool only_waited, std::uint64_t elapsed_ns) {
    const bool by_host = !parcel.by_header;
    const bool is_large = parcel.announced >= job_settings.min_bytes;
    if (!is_large || !parcel.pairs->takes_part(parcel.peer)) return;
    MessageHistory::Received* watch = find_or_make(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr) return;
    watch->latest_by_host = by_host;
    if (parcel.judged) return;
    if (only_waited) watch->usual_ns = elapsed_ns;
    watch->habit.add(only_waited);
    tell(parcel, *watch);
}

}  // namespace

bool watches_waits() {
    return job_settings.waited_by_host != 0 && !runtime().threads;
}

void open_waits() {
    if (job_settings.waited_by_host != 0) open_notices();
}

void close_waits() {
    if (job_settings.waited_by_host != 0) close_notices();
}

void begin_watching(Pairs& pairs) {
    watched[pairs.id] = &pairs;
}

void end_watching(Pairs& pairs) {
    watched.erase(pairs.id);
}

void cut_off(Parcel& parcel) {
    if (!watches_waits() || !parcel.pairs->takes_part(parcel.peer)) return;
    MessageHistory::Received* watch = find_or_make(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr) return;
    parcel.judged = true;
    watch->habit.add(false);
    tell(parcel, *watch);
    if (std::exchange(watch->told_of_cut, true)) return;
    const Pairs& pairs = *parcel.pairs;
    send_notice(
        pairs.world(parcel.peer),
        {.pairs = pairs.id, .from = pairs.own_rank, .tag = parcel.tag, .kind = EndNotice::was_too_short});
}

void sent_in_the_hosts_call(Pairs& pairs, int peer, int tag, std::size_t bytes, std::uint64_t elapsed_ns) {
    MessageHistory::Sent* watch = find_or_make(pairs.watches.sent, peer, tag);
    if (watch == nullptr) return;
    if (!watch->only_waits()) watch->steps[size_of(bytes)].add(RouteTrial::host, cost_of(elapsed_ns, bytes));
    watch->habit.add(true);
    watch->was_of_several = false;
}

void hear(bool ask) {
    while (const std::optional<EndNotice> notice = next_notice(ask))
        take_in(*notice);
}

bool is_the_hosts(Pairs& pairs, int peer, int tag, std::size_t bytes) {
    MessageHistory::Sent* watch = find(pairs.watches.sent, peer, tag);
    if (watch == nullptr) return bytes <= most_bytes_by_host && !job_settings.begins_with_device();
    hear();
    if (watch->without_headers) return true;
    if (bytes > most_bytes_by_host) return false;
    const bool waits = watch->only_waits();
    const bool begins = outstanding.large == 0;
    if (begins && waits && !watch->was_of_several) return true;
    if (!waits && watch->receiver_cuts_off) return false;
    if (begins || exchange.by == Exchange::By::nothing)
        return waits ? host_is_faster(*watch, bytes)
                     : watch->steps[size_of(bytes)].next() == RouteTrial::host;
    return exchange.by == Exchange::By::host && (waits || exchange.is_step) &&
           exchange.messages < Exchange::longest;
}

bool only_waits(Pairs& pairs, int peer, int tag) {
    const MessageHistory::Sent* watch = find(pairs.watches.sent, peer, tag);
    return watch != nullptr && watch->only_waits();
}

void expect(Parcel& parcel) {
    if (!parcel.large || !watches_waits()) return;
    const Overlap overlap = overlap_of(parcel);
    if (overlap != Overlap::none) tell_of_shared_buffer(parcel);
    parcel.agreed = comes_without_header(parcel);
    parcel.by_host = parcel.agreed ||
                     (overlap == Overlap::none && may_come_by_host(*parcel.pairs, parcel.peer, parcel.tag));
    parcel.beneath = !parcel.agreed && overlap == Overlap::expected;
}

void posted(Parcel& parcel) {
    if (!watches_waits()) return;
    parcel.watched = true;
    parcel.posted_ns = now_ns();
    if (outstanding.large.raise() == 0) {
        exchange = {};
        exchange.began_ns = parcel.posted_ns;
    }
    ++exchange.messages;
    if (parcel.by_host && !std::exchange(parcel.moved_by_host, true)) outstanding.moved_by_host.raise();
    if (parcel.receives) {
        receive_outstanding(parcel);
    } else {
        sent_in_exchange(parcel);
    }
    leave(parcel);
}

void is_moved_no_longer(Parcel& parcel) {
    if (std::exchange(parcel.moved_by_host, false)) outstanding.moved_by_host.lower();
}

void stay(Parcel& parcel) {
    parcel.left_ns = 0;
}

void look_at(Parcel& parcel) {
    if (!parcel.watched || parcel.left_ns == 0) return;
    parcel.outside_ns += now_ns() - parcel.left_ns - (in_calls_ns - parcel.left_in_calls_ns);
    parcel.left_ns = 0;
    if (!parcel.receives || parcel.wild || parcel.judged) return;
    // The sender should learn it before its next message, not only after this one.
    MessageHistory::Received* watch = find(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr || !watch->told || !has_computed(parcel.outside_ns, watch->usual_ns)) return;
    parcel.judged = true;
    watch->habit.add(false);
    tell(parcel, *watch);
}

void leave(Parcel& parcel) {
    if (!parcel.watched) return;
    parcel.left_ns = now_ns();
    parcel.left_in_calls_ns = in_calls_ns;
    // Adds the elapsed part of the present call; the rest is counted when the call ends.
    if (call_began_ns != 0) parcel.left_in_calls_ns += parcel.left_ns - call_began_ns;
}

void ended(Parcel& parcel) {
    if (!parcel.watched) return;
    parcel.watched = false;
    is_moved_no_longer(parcel);
    if (parcel.receives) receive_over(parcel);
    const std::uint64_t elapsed_ns = now_ns() - parcel.posted_ns;
    // If no call has checked the parcel, it is unknown whether the program computed.
    const bool only_waited = parcel.left_ns == 0 && !parcel.any_source_or_tag &&
                             parcel.error == MPI_SUCCESS && !has_computed(parcel.outside_ns, elapsed_ns);
    exchange.only_waited = exchange.only_waited && only_waited;
    exchange.bytes += parcel.receives ? parcel.announced : parcel.capacity;
    if (parcel.receives) {
        receive_ended(parcel, only_waited, elapsed_ns);
    } else if (MessageHistory::Sent* watch =
                   find_or_make(parcel.pairs->watches.sent, parcel.peer, parcel.tag)) {
        watch->habit.add(only_waited);
    }
    if (outstanding.large.lower() == 1) exchange_ended();
}

void InCall::enter() {
    if (!watches_waits()) return;
    entered_ = true;
    if (calls_entered++ == 0) call_began_ns = now_ns();
}

void InCall::leave() {
    if (--calls_entered != 0) return;
    in_calls_ns += now_ns() - call_began_ns;
    call_began_ns = 0;
}

void Look::enter() {
    if (requests_ == nullptr || !watches_waits()) return;
    entered_ = true;
    constexpr std::uint32_t asked_every = 16;
    static std::uint32_t looks = 0;
    hear(++looks % asked_every == 0);
    const auto guard = lock();
    for (int i = 0; i < count_; ++i) {
        if (Parcel* parcel = find_registered(requests_[i])) look_at(*parcel);
    }
}

void Look::leave_rest() {
    const auto guard = lock();
    for (int i = 0; i < count_; ++i) {
        if (Parcel* parcel = find_registered(requests_[i])) leave(*parcel);
    }
}

}  // namespace offpath::mpi::p2p
