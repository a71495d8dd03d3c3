#include "transport/encrypted/peer.h"

#include <sodium.h>

#include <algorithm>

namespace offpath::transport::encrypted {

std::shared_ptr<Peer> Peer::make(const KeyPair& own, const PublicKey& key) {
    std::shared_ptr<Peer> made(new Peer(own, key));
    return own.agree(key, made->shared_) ? made : nullptr;
}

Peer::~Peer() {
    sodium_memzero(shared_.data(), shared_.size());
    sodium_memzero(own_admission_.data(), own_admission_.size());
    sodium_memzero(admission_.data(), admission_.size());
}

void Peer::learn(std::uint8_t ciphers, const Admission& admission) {
    const Cipher best = best_of(ciphers & ciphers_here());
    if (best == cipher_ && admission == admission_) return;
    cipher_ = best;
    admission_ = admission;
    to_it_.reset();
}

void Peer::shrink() {
    to_it_.reset();
    from_chacha_.reset();
    from_aes_.reset();
    for (Stream& stream : streams_)
        stream.window.shrink();
}

const Keys& Peer::to_it() {
    if (to_it_ == nullptr) to_it_ = std::make_unique<Keys>(shared_, admission_, cipher_, own_, key_);
    return *to_it_;
}

const Keys* Peer::from_it(Cipher cipher) {
    const auto known = static_cast<std::uint8_t>(cipher);
    if (cipher != Cipher::chacha20_poly1305 && cipher != Cipher::aes256_gcm) return nullptr;
    if ((known & ciphers_here()) == 0) return nullptr;
    std::unique_ptr<Keys>& keys = cipher == Cipher::aes256_gcm ? from_aes_ : from_chacha_;
    if (keys == nullptr) keys = std::make_unique<Keys>(shared_, own_admission_, cipher, key_, own_);
    return keys.get();
}

bool Peer::take(const Nonce& nonce) {
    const auto known = std::ranges::find(streams_, nonce.stream, &Stream::id);
    if (known != streams_.end()) {
        known->last_use = ++uses_;
        return known->window.take(nonce.number);
    }
    if (some_forgotten_ && nonce.stream <= newest_forgotten_) return false;
    if (streams_.size() == max_streams) {
        const auto oldest = std::ranges::min_element(streams_, {}, &Stream::last_use);
        newest_forgotten_ = some_forgotten_ ? std::max(newest_forgotten_, oldest->id) : oldest->id;
        some_forgotten_ = true;
        streams_.erase(oldest);
    }
    streams_.push_back({nonce.stream, ++uses_, {}});
    return streams_.back().window.take(nonce.number);
}

bool Peer::has_all(std::uint32_t stream, std::uint64_t below) const {
    const auto known = std::ranges::find(streams_, stream, &Stream::id);
    return known == streams_.end() ? below == 0 : known->window.has_all(below);
}

}  // namespace offpath::transport::encrypted
