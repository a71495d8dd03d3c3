#include "transport/encrypted/encrypted.h"

#include "base/log.h"
#include "transport/encrypted/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace offpath::transport {
namespace encrypted {
namespace {

// Larger buffers are not kept for the next message.
constexpr std::size_t most_kept_bytes = std::size_t{1} << 20;
// Peers to which no endpoint leads, such as proxies that send here and get no answer. The memory of the less
// recently used half is given back each time so many have taken some.
constexpr std::size_t max_large = 8192;
// All peers. They are kept as long as this transport, because a peer that is forgotten could be replayed.
// When there are more, only those are accepted to which this side connects.
constexpr std::size_t max_peers = std::size_t{1} << 18;

}  // namespace

EncryptedTransport::EncryptedTransport(std::unique_ptr<Transport> below) : below_(std::move(below)) {
    below_->set_handler(this);
}

EncryptedTransport::~EncryptedTransport() {
    handler_ = nullptr;
    below_.reset();  // calls the outstanding completions
}

std::vector<std::byte> EncryptedTransport::address() const {
    const std::vector<std::byte> below = below_->address();
    return encode(Address{ciphers_here(), keys_.public_key(), keys_.admission(), below});
}

std::string EncryptedTransport::describe() const {
    return fmt::format("{}, encrypted ({})", below_->describe(), name_of(best_of(ciphers_here())));
}

std::shared_ptr<Peer> EncryptedTransport::peer_of(const PublicKey& key) {
    const auto known = peers_.find(key);
    return known != peers_.end() ? known->second : Peer::make(keys_, key);
}

bool EncryptedTransport::keep(const std::shared_ptr<Peer>& peer) {
    if (!peers_.contains(peer->key())) {
        if (peers_.size() >= max_peers) return false;
        peers_.emplace(peer->key(), peer);
    }
    peer->last_use = ++uses_;
    return true;
}

void EncryptedTransport::has_grown() {
    if (++grown_ < max_large) return;
    std::vector<Peer*> large;
    for (const auto& [key, peer] : peers_)
        if (peer->endpoints == 0 && !peer->is_small()) large.push_back(peer.get());
    std::ranges::sort(large, {}, &Peer::last_use);
    large.resize(large.size() - std::min(large.size(), max_large / 2));
    for (Peer* const peer : large)
        peer->shrink();
    grown_ = max_large / 2;
}

Status EncryptedTransport::connect(std::span<const std::byte> bytes, Endpoint** endpoint) {
    Address address;
    std::string problem;
    Status status = decode(bytes, address, problem);
    std::shared_ptr<Peer> peer;
    if (status == Status::ok && (peer = peer_of(address.key)) == nullptr) {
        status = Status::protocol;
        problem = "its address names a key that must not be used";
    }
    if (status != Status::ok) {
        log::error(Code::no_way, "cannot connect: {}", problem);
        return status;
    }
    auto made = std::make_unique<EncryptedEndpoint>();
    if (status = below_->connect(address.below, &made->below); status != Status::ok) return status;
    peer->learn(address.ciphers, address.admission);
    ++peer->endpoints;
    made->peer = peer;
    made->stream = ++streams_;
    peer->last_use = ++uses_;
    peers_.insert_or_assign(address.key, std::move(peer));
    *endpoint = made.get();
    endpoints_.push_back(std::move(made));
    return Status::ok;
}

void EncryptedTransport::disconnect(Endpoint* endpoint) {
    EncryptedEndpoint& gone = ours(*endpoint);
    if (gone.below != nullptr) below_->disconnect(std::exchange(gone.below, nullptr));
    // A question may stay without an answer now.
    if (--gone.peer->endpoints == 0) {
        std::erase_if(doubts_, [&](const Doubt& each) { return each.peer == gone.peer; });
        has_grown();
    }
    std::erase(losses_, &gone);
    std::erase_if(endpoints_, [&](const auto& each) { return each.get() == &gone; });
}

std::span<const std::byte> EncryptedTransport::encrypt(EncryptedEndpoint& to, Kind kind,
                                                       std::span<const std::byte> header,
                                                       std::span<const std::byte> payload, std::byte* room) {
    const Keys& keys = to.peer->to_it();
    Clear clear;
    clear.kind = kind;
    clear.cipher = to.peer->cipher();
    clear.nonce = {to.stream, to.next++};
    clear.sender = keys_.public_key();
    if (!payload.empty()) keys.payload.encrypt(clear.nonce, payload, room, {}, clear.payload);
    encode(clear, header_);
    const auto covered = covered_by_tag(header_, payload.size());
    Tag tag;
    keys.header.encrypt(clear.nonce, header, header_.data() + clear_bytes, covered, tag);
    std::ranges::copy(tag, header_.begin() + static_cast<std::ptrdiff_t>(clear_bytes + header.size()));
    return std::span(header_).first(clear_bytes + header.size() + tag_bytes);
}

Status EncryptedTransport::sent(EncryptedEndpoint& to, Status status) {
    if (is_error(status)) {
        to.stream = ++streams_;
        to.next = 0;
    }
    return status;
}

Status EncryptedTransport::post(Endpoint& endpoint, std::span<const std::byte> header,
                                std::span<const std::byte> payload) {
    EncryptedEndpoint& to = ours(endpoint);
    if (header.size() > max_header || payload.size() > max_post) return Status::invalid;
    if (to.lost) return Status::peer_lost;
    const auto whole = encrypt(to, Kind::message, header, payload, posted_.data());
    return sent(to, below_->post(*to.below, whole, std::span(posted_).first(payload.size())));
}

Status EncryptedTransport::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                                std::size_t bytes, Completion* completion) {
    EncryptedEndpoint& to = ours(endpoint);
    if (header.size() > max_header) return Status::invalid;
    if (to.lost) return Status::peer_lost;
    Sending* const sending = sending_.take();
    if (sending->room < bytes) {
        const std::size_t room = bytes <= most_kept_bytes ? std::bit_ceil(bytes) : bytes;
        sending->room = 0;
        sending->bytes.reset(new (std::nothrow) std::byte[room]);
        if (sending->bytes == nullptr) {
            sending_.give_back(sending);
            return Status::memory;
        }
        sending->room = room;
    }
    sending->function = &EncryptedTransport::on_sent;
    sending->owner = this;
    sending->user = completion;
    const auto whole = encrypt(to, Kind::message, header, {static_cast<const std::byte*>(payload), bytes},
                               sending->bytes.get());
    const Status status = below_->send(*to.below, whole, sending->bytes.get(), bytes, sending);
    if (status != Status::in_progress) give_back(sending);
    return sent(to, status);
}

void EncryptedTransport::on_sent(Completion* completion, Status status) {
    auto* const sending = static_cast<Sending*>(completion);
    Completion* const user = sending->user;
    sending->owner->give_back(sending);
    if (user != nullptr) (*user)(status);
}

void EncryptedTransport::give_back(Sending* sending) {
    if (sending->room > most_kept_bytes) {
        sending->bytes.reset();
        sending->room = 0;
    }
    sending_.give_back(sending);
}

std::size_t EncryptedTransport::push_bytes(Endpoint& endpoint) {
    EncryptedEndpoint& to = ours(endpoint);
    return to.below == nullptr ? 0 : below_->push_bytes(*to.below);
}

void EncryptedTransport::hold(Endpoint& endpoint) {
    EncryptedEndpoint& to = ours(endpoint);
    if (to.below != nullptr) below_->hold(*to.below);
}

void EncryptedTransport::let_go(Endpoint& endpoint) {
    EncryptedEndpoint& to = ours(endpoint);
    if (to.below != nullptr) below_->let_go(*to.below);
}

std::size_t EncryptedTransport::unsent(const Endpoint& endpoint) const {
    const auto& to = static_cast<const EncryptedEndpoint&>(endpoint);
    return to.below == nullptr ? 0 : below_->unsent(*to.below);
}

unsigned EncryptedTransport::progress() {
    if (in_progress_) return 0;
    in_progress_ = true;
    // Resets the flag even if a handler throws.
    const std::unique_ptr<bool, void (*)(bool*)> done(&in_progress_, [](bool* flag) { *flag = false; });
    unsigned events = below_->progress();
    if (!doubts_.empty()) settle_doubts();
    if (!losses_.empty()) events += report_losses();
    return events;
}

Status EncryptedTransport::arm() {
    return doubts_.empty() && losses_.empty() ? below_->arm() : Status::retry;
}

}  // namespace encrypted

std::unique_ptr<Transport> make_encrypted_transport(std::unique_ptr<Transport> below) {
    return std::make_unique<encrypted::EncryptedTransport>(std::move(below));
}

bool is_encrypted_address(std::span<const std::byte> address) {
    return encrypted::is_address(address);
}

}  // namespace offpath::transport
