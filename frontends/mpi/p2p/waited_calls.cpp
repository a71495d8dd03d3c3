// Waited messages whose blocking call is the host's own (waited_messages.h).
#include "communicator_state.h"
#include "end_notices.h"
#include "outstanding.h"
#include "waited_messages.h"

namespace offpath::mpi::p2p {

void tell_habit(const Pairs& pairs, int peer, int tag, MessageHistory::Received& watch) {
    if (watch.told == watch.habit.only_waits()) return;
    watch.told = watch.habit.only_waits();
    send_notice(pairs.world(peer), {.pairs = pairs.id,
                                    .from = pairs.own_rank,
                                    .tag = tag,
                                    .kind = watch.told ? EndNotice::only_waits : EndNotice::computes});
}

bool comes_by_host(Pairs& pairs, int peer, int tag) {
    const MessageHistory::Received* watch = find(pairs.watches.received, peer, tag);
    return watch != nullptr && watch->told && watch->latest_by_host;
}

bool may_be_the_hosts_call() {
    return watches_waits() && outstanding.large == 0 && !must_poll();
}

void received_in_the_hosts_call(Pairs& pairs, int peer, int tag, std::uint64_t elapsed_ns) {
    MessageHistory::Received* watch = find_or_make(pairs.watches.received, peer, tag);
    if (watch == nullptr) return;
    watch->latest_by_host = true;
    watch->usual_ns = elapsed_ns;
    watch->habit.add(true);
    tell_habit(pairs, peer, tag, *watch);
}

}  // namespace offpath::mpi::p2p
