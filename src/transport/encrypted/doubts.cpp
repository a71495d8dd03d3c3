// Somebody on the network can change, feign and drop messages. A message that was changed or feigned is
// refused, and has no other effect. One that was changed or dropped is missing, and whoever waits for it
// would wait for ever. The next authentic message shows the gap. Messages that overtake others leave gaps,
// too. So after some time this side asks the peer for the numbers of what it has sent. If no other message
// comes, the layers above ask (docs/daemon.md, Silence), and the answer shows the gap.
#include "base/clock.h"
#include "base/little_endian.h"
#include "base/log.h"
#include "base/patience.h"
#include "transport/encrypted/parts.h"

#include <algorithm>
#include <utility>

namespace offpath::transport::encrypted {
namespace {

// How long a gap may last before the peer is asked. Messages that overtake others close theirs much sooner.
constexpr std::uint64_t gap_patience_ns = 500'000'000;

}  // namespace

EncryptedEndpoint* EncryptedTransport::endpoint_to(const Peer& peer) {
    const auto found = std::ranges::find_if(
        endpoints_, [&](const auto& each) { return each->peer.get() == &peer && !each->lost; });
    return found == endpoints_.end() ? nullptr : found->get();
}

void EncryptedTransport::say(EncryptedEndpoint& to, Kind kind, std::span<const std::byte> header) {
    (void)sent(to, below_->post(*to.below, encrypt(to, kind, header, {}, nullptr), {}));
}

void EncryptedTransport::doubt(const std::shared_ptr<Peer>& peer, const Position& gap) {
    if (lost_after_ns() == UINT64_MAX || endpoint_to(*peer) == nullptr) return;
    const auto known = std::ranges::find(doubts_, peer, &Doubt::peer);
    if (known == doubts_.end()) doubts_.push_back(Doubt{peer, now_ns(), gap, {}, {}, {}});
}

bool EncryptedTransport::ask(Doubt& doubt) {
    EncryptedEndpoint* const to = endpoint_to(*doubt.peer);
    if (to == nullptr) return false;
    doubt.asked = true;
    doubt.since_ns = now_ns();
    say(*to, Kind::question, {});
    return true;
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

bool EncryptedTransport::is_settled(Doubt& doubt, std::uint64_t now_ns) {
    const auto has_come = [&](const Position& position) {
        return doubt.peer->has_all(position.stream, position.next);
    };
    if (!doubt.asked) {
        if (has_come(doubt.gap)) return true;
        return now_ns - doubt.since_ns > gap_patience_ns && !ask(doubt);
    }
    // Whatever the peer has sent before its answer may still come, because messages overtake each other.
    return doubt.answered && std::ranges::all_of(doubt.positions, has_come);
}

void EncryptedTransport::settle_doubts() {
    const std::uint64_t now = now_ns();
    for (std::size_t i = doubts_.size(); i-- > 0;) {
        const bool settled = is_settled(doubts_[i], now);
        if (!settled && (!doubts_[i].asked || now < doubts_[i].since_ns + lost_after_ns())) continue;
        const std::shared_ptr<Peer> peer = doubts_[i].peer;
        doubts_.erase(doubts_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!settled) lose(*peer, "a message from it was changed or dropped, and did not come again");
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
