#include "transport/encrypted/cipher.h"

#include "base/little_endian.h"

#include <sodium.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace offpath::transport::encrypted {
namespace {

static_assert(tag_bytes == crypto_aead_chacha20poly1305_ietf_ABYTES &&
              tag_bytes == crypto_aead_aes256gcm_ABYTES);
static_assert(sizeof(PublicKey) == crypto_scalarmult_BYTES && sizeof(PublicKey) == crypto_box_PUBLICKEYBYTES);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == 12 && crypto_aead_aes256gcm_NPUBBYTES == 12);

void prepare() {
    static const int ready = sodium_init();
    if (ready < 0) throw std::runtime_error("libsodium cannot be initialised: no source of random numbers");
}

const unsigned char* read_from(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* write_to(std::span<std::byte> bytes) {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

std::array<std::byte, 12> bytes_of(const Nonce& nonce) {
    std::array<std::byte, 12> bytes;
    write_little(bytes, 0, nonce.stream, 4);
    write_little(bytes, 4, nonce.number, 8);
    return bytes;
}

}  // namespace

std::uint8_t ciphers_here() {
    prepare();
    const auto chacha = static_cast<std::uint8_t>(Cipher::chacha20_poly1305);
    const auto aes = static_cast<std::uint8_t>(Cipher::aes256_gcm);
    return crypto_aead_aes256gcm_is_available() != 0 ? chacha | aes : chacha;
}

Cipher best_of(std::uint8_t ciphers) {
    const bool aes = (ciphers & static_cast<std::uint8_t>(Cipher::aes256_gcm)) != 0;
    return aes ? Cipher::aes256_gcm : Cipher::chacha20_poly1305;
}

const char* name_of(Cipher cipher) {
    return cipher == Cipher::aes256_gcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
}

Tag digest_of(std::span<const std::byte> bytes) {
    prepare();
    Tag digest;
    crypto_generichash(write_to(digest), digest.size(), read_from(bytes), bytes.size(), nullptr, 0);
    return digest;
}

KeyPair::KeyPair() {
    prepare();
    crypto_box_keypair(write_to(public_), write_to(secret_));
}

KeyPair::~KeyPair() {
    sodium_memzero(secret_.data(), secret_.size());
}

bool KeyPair::agree(const PublicKey& peer, SharedKey& shared) const {
    return crypto_scalarmult(write_to(shared), read_from(secret_), read_from(peer)) == 0;
}

CipherKey::CipherKey(const SharedKey& shared, Cipher cipher, Use use, const PublicKey& from,
                     const PublicKey& to)
    : cipher_(cipher) {
    static_assert(schedule_bytes == sizeof(crypto_aead_aes256gcm_state));
    constexpr std::string_view label = "offpath encrypted transport";
    const std::array<std::byte, 2> choice{static_cast<std::byte>(cipher), static_cast<std::byte>(use)};
    crypto_generichash_state state;
    crypto_generichash_init(&state, read_from(shared), shared.size(), key_.size());
    for (const std::span<const std::byte> part :
         {std::as_bytes(std::span(label)), std::span<const std::byte>(choice),
          std::span<const std::byte>(from), std::span<const std::byte>(to)})
        crypto_generichash_update(&state, read_from(part), part.size());
    crypto_generichash_final(&state, write_to(key_), key_.size());
    sodium_memzero(&state, sizeof state);
    if (cipher == Cipher::aes256_gcm)
        crypto_aead_aes256gcm_beforenm(reinterpret_cast<crypto_aead_aes256gcm_state*>(schedule_.data()),
                                       read_from(key_));
}

CipherKey::~CipherKey() {
    sodium_memzero(key_.data(), key_.size());
    sodium_memzero(schedule_.data(), schedule_.size());
}

void CipherKey::encrypt(const Nonce& nonce, std::span<const std::byte> from, std::byte* to,
                        std::span<const std::byte> covered, Tag& tag) const {
    const auto number = bytes_of(nonce);
    auto* const out = reinterpret_cast<unsigned char*>(to);
    if (cipher_ == Cipher::aes256_gcm)
        crypto_aead_aes256gcm_encrypt_detached_afternm(
            out, write_to(tag), nullptr, read_from(from), from.size(), read_from(covered), covered.size(),
            nullptr, read_from(number),
            reinterpret_cast<const crypto_aead_aes256gcm_state*>(schedule_.data()));
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(out, write_to(tag), nullptr, read_from(from),
                                                           from.size(), read_from(covered), covered.size(),
                                                           nullptr, read_from(number), read_from(key_));
}

bool CipherKey::decrypt(const Nonce& nonce, std::span<const std::byte> from, std::byte* to,
                        std::span<const std::byte> covered, const Tag& tag) const {
    const auto number = bytes_of(nonce);
    auto* const out = reinterpret_cast<unsigned char*>(to);
    if (cipher_ == Cipher::aes256_gcm)
        return crypto_aead_aes256gcm_decrypt_detached_afternm(
                   out, nullptr, read_from(from), from.size(), read_from(tag), read_from(covered),
                   covered.size(), read_from(number),
                   reinterpret_cast<const crypto_aead_aes256gcm_state*>(schedule_.data())) == 0;
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
               out, nullptr, read_from(from), from.size(), read_from(tag), read_from(covered), covered.size(),
               read_from(number), read_from(key_)) == 0;
}

}  // namespace offpath::transport::encrypted
