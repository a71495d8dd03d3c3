#include "transport/encrypted/cipher.h"

#include "base/little_endian.h"
#include "base/sodium_calls.h"

#include <algorithm>
#include <string_view>

namespace offpath::transport::encrypted {
namespace {

static_assert(tag_bytes == crypto_aead_chacha20poly1305_ietf_ABYTES &&
              tag_bytes == crypto_aead_aes256gcm_ABYTES);
static_assert(sizeof(PublicKey) == crypto_scalarmult_BYTES && sizeof(PublicKey) == crypto_box_PUBLICKEYBYTES);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == 12 && crypto_aead_aes256gcm_NPUBBYTES == 12);

// libsodium takes no null pointer, not even for nothing.
std::byte nothing;
unsigned char* room(std::byte* to) {
    return reinterpret_cast<unsigned char*>(to != nullptr ? to : &nothing);
}
const unsigned char* content(std::span<const std::byte> from) {
    return reinterpret_cast<const unsigned char*>(from.data() != nullptr ? from.data() : &nothing);
}

std::array<std::byte, 12> bytes_of(const Nonce& nonce) {
    std::array<std::byte, 12> bytes;
    write_little(bytes, 0, nonce.stream, 4);
    write_little(bytes, 4, nonce.number, 8);
    return bytes;
}

}  // namespace

std::uint8_t ciphers_here() {
    sodium::start();
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
    sodium::start();
    Tag digest;
    crypto_generichash(sodium::out(digest), digest.size(), sodium::in(bytes), bytes.size(), nullptr, 0);
    return digest;
}

KeyPair::KeyPair() {
    sodium::start();
    crypto_box_keypair(sodium::out(public_), sodium::out(secret_));
    randombytes_buf(admission_.data(), admission_.size());
}

KeyPair::~KeyPair() {
    sodium_memzero(secret_.data(), secret_.size());
    sodium_memzero(admission_.data(), admission_.size());
}

bool KeyPair::agree(const PublicKey& peer, SharedKey& shared) const {
    return crypto_scalarmult(sodium::out(shared), sodium::in(secret_), sodium::in(peer)) == 0;
}

CipherKey::CipherKey(const SharedKey& shared, const Admission& admission, Cipher cipher, Use use,
                     const PublicKey& from, const PublicKey& to)
    : cipher_(cipher) {
    static_assert(schedule_bytes == sizeof(crypto_aead_aes256gcm_state));
    constexpr std::string_view label = "offpath encrypted transport";
    const std::array<std::byte, 2> choice{static_cast<std::byte>(cipher), static_cast<std::byte>(use)};
    crypto_generichash_state state;
    crypto_generichash_init(&state, sodium::in(shared), shared.size(), key_.size());
    for (const std::span<const std::byte> part :
         {std::as_bytes(std::span(label)), std::span<const std::byte>(admission),
          std::span<const std::byte>(choice), std::span<const std::byte>(from),
          std::span<const std::byte>(to)})
        crypto_generichash_update(&state, sodium::in(part), part.size());
    crypto_generichash_final(&state, sodium::out(key_), key_.size());
    sodium_memzero(&state, sizeof state);
    if (cipher == Cipher::aes256_gcm)
        crypto_aead_aes256gcm_beforenm(reinterpret_cast<crypto_aead_aes256gcm_state*>(schedule_.data()),
                                       sodium::in(key_));
}

CipherKey::~CipherKey() {
    sodium_memzero(key_.data(), key_.size());
    sodium_memzero(schedule_.data(), schedule_.size());
}

void CipherKey::encrypt(const Nonce& nonce, std::span<const std::byte> from, std::byte* to,
                        std::span<const std::byte> covered, Tag& tag) const {
    const auto number = bytes_of(nonce);
    unsigned char* const out = room(to);
    if (cipher_ == Cipher::aes256_gcm)
        crypto_aead_aes256gcm_encrypt_detached_afternm(
            out, sodium::out(tag), nullptr, sodium::in(from), from.size(), sodium::in(covered),
            covered.size(), nullptr, sodium::in(number),
            reinterpret_cast<const crypto_aead_aes256gcm_state*>(schedule_.data()));
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(out, sodium::out(tag), nullptr, sodium::in(from),
                                                           from.size(), sodium::in(covered), covered.size(),
                                                           nullptr, sodium::in(number), sodium::in(key_));
}

bool CipherKey::decrypt(const Nonce& nonce, std::span<const std::byte> from, std::byte* to,
                        std::span<const std::byte> covered, const Tag& tag) const {
    const auto number = bytes_of(nonce);
    unsigned char* const out = room(to);
    if (cipher_ == Cipher::aes256_gcm)
        return crypto_aead_aes256gcm_decrypt_detached_afternm(
                   out, nullptr, content(from), from.size(), sodium::in(tag), sodium::in(covered),
                   covered.size(), sodium::in(number),
                   reinterpret_cast<const crypto_aead_aes256gcm_state*>(schedule_.data())) == 0;
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
               out, nullptr, content(from), from.size(), sodium::in(tag), sodium::in(covered), covered.size(),
               sodium::in(number), sodium::in(key_)) == 0;
}

}  // namespace offpath::transport::encrypted
