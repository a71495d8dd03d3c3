#include "base/random_numbers.h"

#include "base/little_endian.h"
#include "base/sodium_calls.h"

#include <cstring>

namespace offpath {
RandomNumbers::~RandomNumbers() {
    sodium_memzero(numbers_.data(), sizeof numbers_);
}

void RandomNumbers::fill() {
    std::array<unsigned char, crypto_stream_chacha20_KEYBYTES> key;
    static_assert(sizeof key == key_words * sizeof(std::uint64_t));
    if (!seeded_) {
        sodium::start();
        if (seed_.has_value()) {
            key.fill(0);
            std::memcpy(key.data(), &*seed_, sizeof *seed_);
        } else {
            randombytes_buf(key.data(), key.size());
        }
        seeded_ = true;
    } else {
        std::memcpy(key.data(), numbers_.data(), key.size());
    }
    // Each key is used once, so the nonce need not change.
    constexpr std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce{};
    crypto_stream_chacha20(reinterpret_cast<unsigned char*>(numbers_.data()), sizeof numbers_, nonce.data(),
                           key.data());
    sodium_memzero(key.data(), key.size());
    used_ = key_words;
}

std::uint64_t keyed_word(std::span<const std::byte, 32> secret, std::span<const std::byte> message) {
    static_assert(crypto_auth_hmacsha256_KEYBYTES == 32);
    sodium::start();
    std::array<std::byte, crypto_auth_hmacsha256_BYTES> hash;
    crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(hash.data()),
                           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                           reinterpret_cast<const unsigned char*>(secret.data()));
    return read_little(hash, 0, 8);
}

}  // namespace offpath
