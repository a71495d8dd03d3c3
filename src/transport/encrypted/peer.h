// Peer: another encrypting transport, by its public key: the keys of both directions, and which of its
// messages have come. Threads: one.
#pragma once

#include "transport/encrypted/cipher.h"
#include "transport/encrypted/replay_window.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::transport::encrypted {

// The keys of one direction with one cipher.
struct Keys {
    Keys(const SharedKey& shared, const Admission& admission, Cipher cipher, const PublicKey& from,
         const PublicKey& to)
        : header(shared, admission, cipher, Use::header, from, to),
          payload(shared, admission, cipher, Use::payload, from, to) {}
    CipherKey header, payload;
};

class Peer {
  public:
    // Null: the key is none that may be used.
    static std::shared_ptr<Peer> make(const KeyPair& own, const PublicKey& key);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    const PublicKey& key() const { return key_; }
    // From its address: which ciphers the peer knows, and what admits messages to it.
    void learn(std::uint8_t ciphers, const Admission& admission);
    Cipher cipher() const { return cipher_; }  // of what is sent to it
    const Keys& to_it();                       // of cipher()
    // Null: this process does not know that cipher.
    const Keys* from_it(Cipher cipher);
    // Gives the memory of keys and windows back. It stays known which messages have come.
    void shrink();
    bool is_small() const { return to_it_ == nullptr && from_chacha_ == nullptr && from_aes_ == nullptr; }

    // True: the message has not come before. It counts as come from now on.
    bool take(const Nonce& nonce);
    // Whether all messages of the stream below this number have come.
    bool has_all(std::uint32_t stream, std::uint64_t below) const;

    unsigned endpoints = 0;      // that lead to it
    std::uint64_t last_use = 0;  // counts uses of all peers

  private:
    Peer(const KeyPair& own, const PublicKey& key)
        : own_(own.public_key()), key_(key), own_admission_(own.admission()) {}

    // A peer has a stream for each of its endpoints. Of those that it does not use any more, the oldest are
    // forgotten, and nothing more is accepted from them.
    struct Stream {
        std::uint32_t id;
        std::uint64_t last_use;
        ReplayWindow window;
    };
    static constexpr std::size_t max_streams = 8;

    PublicKey own_, key_;
    Admission own_admission_, admission_{};
    SharedKey shared_{};
    Cipher cipher_ = Cipher::chacha20_poly1305;
    std::unique_ptr<Keys> to_it_, from_chacha_, from_aes_;
    std::vector<Stream> streams_;
    std::uint64_t uses_ = 0;
    bool some_forgotten_ = false;
    std::uint32_t newest_forgotten_ = 0;
};

}  // namespace offpath::transport::encrypted
