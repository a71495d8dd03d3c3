#include "shared_buffers.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "communicator_state.h"
#include "end_notices.h"
#include "parcel.h"
#include "waited_messages.h"

namespace offpath::mpi::p2p {
namespace {

std::vector<Parcel*> receives;

bool overlap(const Parcel& a, const Parcel& b) {
    const auto begin = [](const Parcel& parcel) { return static_cast<const char*>(parcel.buffer); };
    const auto bytes = [](const Parcel& parcel) {
        return parcel.use.contiguous()
                   ? parcel.capacity
                   : parcel.count * static_cast<std::size_t>(std::max<MPI_Aint>(parcel.use.extent, 0));
    };
    return begin(a) < begin(b) + bytes(b) && begin(b) < begin(a) + bytes(a);
}

bool waits_for_a_header(const Parcel& parcel) {
    return parcel.by_host && !parcel.agreed && !parcel.host_done;
}

}  // namespace

void receive_outstanding(Parcel& parcel) {
    receives.push_back(&parcel);
}

void receive_over(Parcel& parcel) {
    std::erase(receives, &parcel);
}

Overlap overlap_of(const Parcel& parcel) {
    Overlap found = Overlap::none;
    for (const Parcel* other : receives) {
        if (!overlap(parcel, *other)) continue;
        if (waits_for_a_header(*other)) return Overlap::expected;
        found = Overlap::another;
    }
    return found;
}

std::vector<Parcel*> expected_beneath(const Parcel& parcel) {
    std::vector<Parcel*> found;
    for (Parcel* other : receives) {
        if (other == &parcel) return found;
        if (waits_for_a_header(*other) && overlap(parcel, *other)) found.push_back(other);
    }
    return found;
}

void tell_of_shared_buffer(const Parcel& parcel) {
    // A message with gaps may lie in the gaps of the other one.
    const bool is_sure = parcel.use.contiguous() && parcel.pairs->takes_part(parcel.peer) &&
                         std::any_of(receives.begin(), receives.end(), [&](const Parcel* other) {
                             return other->use.contiguous() && overlap(parcel, *other);
                         });
    if (!is_sure) return;
    MessageHistory::Received* watch = find_or_make(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr || watch->shares_a_buffer) return;
    watch->shares_a_buffer = true;
    send_notice(parcel.pairs->world(parcel.peer), {.pairs = parcel.pairs->id,
                                                   .from = parcel.pairs->own_rank,
                                                   .tag = parcel.tag,
                                                   .kind = EndNotice::shares_a_buffer});
}

void promise_no_headers(Pairs& pairs, int peer, int tag) {
    MessageHistory::Sent* watch = find_or_make(pairs.watches.sent, peer, tag);
    if (watch == nullptr || watch->without_headers) return;
    const std::optional<std::uint32_t> next = pairs.sent.next(peer, tag);
    if (!next.has_value()) return;
    pairs.sent.undo(peer, tag);
    watch->without_headers = true;
    send_notice(pairs.world(peer), {.pairs = pairs.id,
                                    .from = pairs.own_rank,
                                    .tag = tag,
                                    .kind = EndNotice::without_headers,
                                    .number = *next});
}

bool has_promised_no_headers(Pairs& pairs, int peer, int tag) {
    const MessageHistory::Sent* watch = find(pairs.watches.sent, peer, tag);
    return watch != nullptr && watch->without_headers;
}

void no_headers_from(Pairs& pairs, int peer, int tag, std::uint32_t number) {
    if (MessageHistory::Received* watch = find(pairs.watches.received, peer, tag))
        watch->without_headers = number;
}

bool comes_without_header(const Parcel& parcel) {
    const MessageHistory::Received* watch = find(parcel.pairs->watches.received, parcel.peer, parcel.tag);
    if (watch == nullptr || !watch->shares_a_buffer || !parcel.numbered) return false;
    if (!watch->without_headers.has_value()) hear();
    return watch->without_headers.has_value() &&
           static_cast<std::int32_t>(parcel.number - *watch->without_headers) >= 0;
}

}  // namespace offpath::mpi::p2p
