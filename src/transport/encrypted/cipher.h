// The cryptography of the encrypting transport, by libsodium: X25519 agrees on keys, BLAKE2b derives them,
// AES-256-GCM or ChaCha20-Poly1305 encrypts. AES is used where both processors have instructions for it.
// Keys are wiped when they end. The functions throw std::runtime_error if libsodium cannot start. Threads:
// any, one at a time for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::transport::encrypted {

constexpr std::size_t tag_bytes = 16;
using Tag = std::array<std::byte, tag_bytes>;
using PublicKey = std::array<std::byte, 32>;
using SharedKey = std::array<std::byte, 32>;
// A random number of a receiver, part of its address and never sent with messages: only those who were given
// the address can make a message that the receiver accepts.
using Admission = std::array<std::byte, 32>;

// The values are bits.
enum class Cipher : std::uint8_t { chacha20_poly1305 = 1, aes256_gcm = 2 };

// The ciphers that this process can use.
std::uint8_t ciphers_here();
// The one to use among those that both sides know.
Cipher best_of(std::uint8_t ciphers);
const char* name_of(Cipher cipher);

// The first 16 bytes of a BLAKE2b hash. Shows damage, not intent.
Tag digest_of(std::span<const std::byte> bytes);

// No two messages under one key have the same nonce.
struct Nonce {
    std::uint32_t stream = 0;
    std::uint64_t number = 0;
};

class KeyPair {
  public:
    KeyPair();
    ~KeyPair();
    KeyPair(const KeyPair&) = delete;
    KeyPair& operator=(const KeyPair&) = delete;
    const PublicKey& public_key() const { return public_; }
    const Admission& admission() const { return admission_; }
    // The key that both sides compute. False: the peer's key is none that may be used.
    bool agree(const PublicKey& peer, SharedKey& shared) const;

  private:
    PublicKey public_{};
    std::array<std::byte, 32> secret_{};
    Admission admission_{};
};

// What a key encrypts. Each use has a key of its own.
enum class Use : std::uint8_t { header = 1, payload = 2 };

class CipherKey {
  public:
    // `admission`: that of the receiver, `to`.
    CipherKey(const SharedKey& shared, const Admission& admission, Cipher cipher, Use use,
              const PublicKey& from, const PublicKey& to);
    ~CipherKey();
    CipherKey(const CipherKey&) = delete;
    CipherKey& operator=(const CipherKey&) = delete;

    // `to` has room for as many bytes as `from`. They may be the same memory, but must not overlap otherwise.
    // `covered`: bytes that the tag protects without encrypting them.
    void encrypt(const Nonce& nonce, std::span<const std::byte> from, std::byte* to,
                 std::span<const std::byte> covered, Tag& tag) const;
    // False: the bytes, or what is covered, are not what was encrypted; `to` then has no meaning.
    bool decrypt(const Nonce& nonce, std::span<const std::byte> from, std::byte* to,
                 std::span<const std::byte> covered, const Tag& tag) const;

  private:
    static constexpr std::size_t key_bytes = 32, schedule_bytes = 512;
    Cipher cipher_;
    std::array<std::byte, key_bytes> key_{};
    alignas(16) std::array<std::byte, schedule_bytes> schedule_{};  // of AES, made from the key
};

}  // namespace offpath::transport::encrypted
