#include "control/frame_cipher.h"

#include "base/little_endian.h"
#include "base/sodium_calls.h"
#include "control/authentication.h"

#include <string_view>

namespace offpath::control {
namespace {

static_assert(FrameCipher::tag_bytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
constexpr std::size_t nonce_bytes = crypto_aead_chacha20poly1305_ietf_NPUBBYTES;

std::array<std::byte, 32> key_of(const Secret& secret, const Nonce& daemon, const Nonce& client,
                                 std::string_view label) {
    std::array<std::byte, 32> key;
    crypto_generichash_state state;
    crypto_generichash_init(&state, sodium::in(secret), secret.size(), key.size());
    for (const std::span<const std::byte> part :
         {std::as_bytes(std::span(label)), std::span<const std::byte>(daemon),
          std::span<const std::byte>(client)})
        crypto_generichash_update(&state, sodium::in(part), part.size());
    crypto_generichash_final(&state, sodium::out(key), key.size());
    sodium_memzero(&state, sizeof state);
    return key;
}

std::array<std::byte, nonce_bytes> next_nonce(std::uint64_t& number) {
    std::array<std::byte, nonce_bytes> nonce{};
    write_little(nonce, 0, number++, 8);
    return nonce;
}

}  // namespace

FrameCipher::FrameCipher(const Secret& secret, const Nonce& daemon, const Nonce& client, Side side) {
    sodium::start();
    const bool here = side == Side::daemon;
    (here ? out_ : in_).key = key_of(secret, daemon, client, "offpath frames of the daemon");
    (here ? in_ : out_).key = key_of(secret, daemon, client, "offpath frames of the client");
}

FrameCipher::~FrameCipher() {
    wipe(out_.key);
    wipe(in_.key);
}

void FrameCipher::encrypt(std::vector<std::byte>& message) {
    const auto nonce = next_nonce(out_.number);
    const std::size_t bytes = message.size();
    message.resize(bytes + tag_bytes);
    crypto_aead_chacha20poly1305_ietf_encrypt(sodium::out(message), nullptr, sodium::in(message), bytes,
                                              nullptr, 0, nullptr, sodium::in(nonce), sodium::in(out_.key));
}

bool FrameCipher::decrypt(std::vector<std::byte>& message) {
    const auto nonce = next_nonce(in_.number);
    if (message.size() < tag_bytes ||
        crypto_aead_chacha20poly1305_ietf_decrypt(sodium::out(message), nullptr, nullptr, sodium::in(message),
                                                  message.size(), nullptr, 0, sodium::in(nonce),
                                                  sodium::in(in_.key)) != 0)
        return false;
    message.resize(message.size() - tag_bytes);
    return true;
}

}  // namespace offpath::control
