// Somebody on the network can change or feign messages. One that was feigned harms nobody. One that was
// changed is missing, and whoever waits for it would wait for ever. This side cannot see which of the two it
// was, so it asks the peer for the numbers of what it has sent.
#include "base/clock.h"
#include "base/little_endian.h"
#include "base/log.h"
#include "base/patience.h"
#include "transport/encrypted/parts.h"

#include <algorithm>
#include <utility>

namespace offpath::transport::encrypted {

EncryptedEndpoint* EncryptedTransport::endpoint_to(const Peer& peer) {
    const auto found = std::ranges::find_if(
        endpoints_, [&](const auto& each) { return each->peer.get() == &peer && !each->lost; });
    return found == endpoints_.end() ? nullptr : found->get();
}

void EncryptedTransport::say(EncryptedEndpoint& to, Kind kind, std::span<const std::byte> header) {
    (void)sent(to, below_->post(*to.below, encrypt(to, kind, header, {}, nullptr), {}));
}

void EncryptedTransport::doubt(const std::shared_ptr<Peer>& peer) {
    if (lost_after_ns() == UINT64_MAX || std::ranges::find(doubts_, peer, &Doubt::peer) != doubts_.end())
        return;
    EncryptedEndpoint* const to = endpoint_to(*peer);
    if (to == nullptr) return;
    doubts_.push_back({peer, now_ns(), false, {}});
    say(*to, Kind::question, {});
}

void EncryptedTransport::answer(const Peer& peer) {
    std::array<std::byte, max_header> header;
    std::size_t used = 0;
    for (const auto& endpoint : endpoints_) {
        if (endpoint->peer.get() != &peer || endpoint->lost || used / position_bytes == max_positions)
            continue;
        write_little(header, used, endpoint->stream, 4);
        write_little(header, used + 4, endpoint->next, 8);
        used += position_bytes;
    }
    if (EncryptedEndpoint* const to = endpoint_to(peer); to != nullptr)
        say(*to, Kind::answer, std::span(header).first(used));
}

void EncryptedTransport::on_answer(const Peer& peer, std::span<const std::byte> header) {
    const auto found =
        std::ranges::find_if(doubts_, [&](const Doubt& each) { return each.peer.get() == &peer; });
    if (found == doubts_.end()) return;
    found->answered = true;
    found->positions.clear();
    for (std::size_t at = 0; at + position_bytes <= header.size(); at += position_bytes)
        found->positions.push_back(
            {static_cast<std::uint32_t>(read_little(header, at, 4)), read_little(header, at + 4, 8)});
}

// Whatever the peer has sent before its answer may still come, because messages overtake each other.
void EncryptedTransport::settle_doubts() {
    const std::uint64_t now = now_ns();
    for (std::size_t i = doubts_.size(); i-- > 0;) {
        const Doubt& each = doubts_[i];
        const bool complete =
            each.answered && std::ranges::all_of(each.positions, [&](const Position& position) {
                return each.peer->has_all(position.stream, position.next);
            });
        if (!complete && now - each.since_ns < lost_after_ns()) continue;
        const Doubt settled = std::move(doubts_[i]);
        doubts_.erase(doubts_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!complete) lose(*settled.peer, "a message from it was changed, and did not come again");
    }
}

void EncryptedTransport::lose(const Peer& peer, const char* why) {
    bool some = false;
    for (const auto& endpoint : endpoints_) {
        if (endpoint->peer.get() != &peer || endpoint->lost) continue;
        endpoint->lost = some = true;
        losses_.push_back(endpoint.get());
    }
    if (some) log::error(Code::malformed, "a connection ends: {}", why);
}

// The called code may disconnect.
unsigned EncryptedTransport::report_losses() {
    unsigned events = 0;
    while (!losses_.empty()) {
        EncryptedEndpoint* const lost = losses_.front();
        losses_.erase(losses_.begin());
        if (lost->below != nullptr) below_->disconnect(std::exchange(lost->below, nullptr));
        if (handler_ != nullptr) handler_->on_endpoint_lost(*lost);
        ++events;
    }
    return events;
}

}  // namespace offpath::transport::encrypted
