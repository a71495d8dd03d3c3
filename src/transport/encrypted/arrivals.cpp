// What comes from the transport below: messages and payloads are checked and decrypted, or refused.
#include "base/clock.h"
#include "base/log.h"
#include "transport/encrypted/parts.h"

#include <utility>

namespace offpath::transport::encrypted {

void EncryptedTransport::on_message(const Incoming& message) {
    Clear clear;
    const bool decoded = decode(message.header, clear);
    std::shared_ptr<Peer> peer = decoded ? peer_of(clear.sender) : nullptr;
    const bool grows = peer != nullptr && peer->endpoints == 0 && peer->is_small();
    const Keys* const keys = peer != nullptr ? peer->from_it(clear.cipher) : nullptr;
    std::array<std::byte, max_header> header;
    // Whoever sends something that is refused here has not shown that it has the key: it changes nothing.
    const char* problem = nullptr;
    if (keys == nullptr)
        problem = "it is not encrypted";
    else if (!open(message, clear, *keys, header))
        problem = "it was changed, or is not from whom it says";
    else if (!keep(peer))
        problem = "too many peers have come already";
    else if (!peer->take(clear.nonce))
        problem = "it has come before";
    if (grows && peers_.contains(clear.sender)) has_grown();
    if (problem != nullptr) {
        if (message.rendezvous != nullptr) below_->discard(message.rendezvous);
        return refuse(problem, clear.sender);
    }
    if (const Position here{clear.nonce.stream, clear.nonce.number}; !peer->has_all(here.stream, here.next))
        doubt(peer, here);
    const std::size_t bytes = message.header.size() - clear_bytes - tag_bytes;
    deliver(message, std::span(header).first(bytes), clear, peer);
}

bool EncryptedTransport::open(const Incoming& message, const Clear& clear, const Keys& keys,
                              std::span<std::byte> header) {
    const std::size_t bytes = message.header.size() - clear_bytes - tag_bytes;
    Tag tag;
    std::ranges::copy(message.header.last(tag_bytes), tag.begin());
    if (!keys.header.decrypt(clear.nonce, message.header.subspan(clear_bytes, bytes), header.data(),
                             covered_by_tag(message.header, message.bytes), tag))
        return false;
    if (message.rendezvous != nullptr || message.bytes == 0) return true;
    if (opened_.size() < message.bytes) opened_.resize(message.bytes);
    return keys.payload.decrypt(clear.nonce, {message.data, message.bytes}, opened_.data(), {},
                                clear.payload);
}

void EncryptedTransport::refuse(const char* why, const PublicKey& sender) {
    if (!lines_.may_speak(now_ns())) return;
    log::warn(Code::malformed, "a message was dropped: {}; it names the key {:02x}{:02x}{:02x}{:02x}...{}",
              why, std::to_integer<unsigned>(sender[0]), std::to_integer<unsigned>(sender[1]),
              std::to_integer<unsigned>(sender[2]), std::to_integer<unsigned>(sender[3]), lines_.left_out());
}

void EncryptedTransport::deliver(const Incoming& message, std::span<const std::byte> header,
                                 const Clear& clear, const std::shared_ptr<Peer>& peer) {
    if (clear.kind != Kind::message) {
        if (message.rendezvous != nullptr) below_->discard(message.rendezvous);
        return clear.kind == Kind::question ? answer(*peer) : on_answer(*peer, header);
    }
    Incoming plain;
    plain.header = header;
    plain.bytes = message.bytes;
    if (message.rendezvous != nullptr) {
        Arrival* const arrival = arrivals_.take();
        arrival->function = &EncryptedTransport::on_fetched;
        arrival->owner = this;
        arrival->peer = peer;
        arrival->below = message.rendezvous;
        arrival->cipher = clear.cipher;
        arrival->nonce = clear.nonce;
        arrival->tag = clear.payload;
        arrival->bytes = message.bytes;
        plain.rendezvous = arrival;
    } else {
        plain.data = message.bytes > 0 ? opened_.data() : message.data;
    }
    if (handler_ != nullptr) return handler_->on_message(plain);
    if (plain.rendezvous != nullptr) discard(plain.rendezvous);
}

Status EncryptedTransport::fetch(void* rendezvous, void* destination, std::size_t bytes,
                                 Completion* completion) {
    auto* const arrival = static_cast<Arrival*>(rendezvous);
    if (bytes != arrival->bytes) return Status::invalid;
    arrival->user = completion;
    arrival->destination = static_cast<std::byte*>(destination);
    Status status = below_->fetch(arrival->below, destination, bytes, arrival);
    if (status == Status::in_progress) return status;
    if (status == Status::ok) status = decrypt(*arrival);
    give_back(arrival);
    return status;
}

Status EncryptedTransport::decrypt(Arrival& arrival) {
    const Keys* const keys = arrival.peer->from_it(arrival.cipher);
    const std::span<const std::byte> encrypted(arrival.destination, arrival.bytes);
    if (arrival.bytes == 0 ||
        keys->payload.decrypt(arrival.nonce, encrypted, arrival.destination, {}, arrival.tag))
        return Status::ok;
    lose(*arrival.peer, "a payload from it was changed");
    return Status::peer_lost;
}

void EncryptedTransport::on_fetched(Completion* completion, Status status) {
    auto* const arrival = static_cast<Arrival*>(completion);
    EncryptedTransport& owner = *arrival->owner;
    Completion* const user = arrival->user;
    if (status == Status::ok) status = owner.decrypt(*arrival);
    owner.give_back(arrival);
    if (user != nullptr) (*user)(status);
}

void EncryptedTransport::give_back(Arrival* arrival) {
    arrival->peer.reset();
    arrivals_.give_back(arrival);
}

void EncryptedTransport::discard(void* rendezvous) {
    auto* const arrival = static_cast<Arrival*>(rendezvous);
    below_->discard(arrival->below);
    give_back(arrival);
}

void EncryptedTransport::on_endpoint_lost(Endpoint& below) {
    for (auto& endpoint : endpoints_) {
        if (endpoint->below != &below || endpoint->lost) continue;
        endpoint->lost = true;
        if (handler_ != nullptr) handler_->on_endpoint_lost(*endpoint);
        return;
    }
}

}  // namespace offpath::transport::encrypted
