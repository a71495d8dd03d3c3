// FrameCipher: encrypts what a remote client and its daemon say to each other after their handshake, by
// ChaCha20-Poly1305. Each direction has a key, made from the job's secret and the handshake's random numbers,
// and counts its messages. So a message that was changed, left out, repeated or moved does not decrypt. Keys
// are wiped when they end. Threads: one at a time.
#pragma once

#include "control/messages.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::control {

class FrameCipher {
  public:
    enum class Side { daemon, client };
    // How much longer an encrypted message is.
    static constexpr std::size_t tag_bytes = 16;

    FrameCipher(const Secret& secret, const Nonce& daemon, const Nonce& client, Side side);
    ~FrameCipher();
    FrameCipher(const FrameCipher&) = delete;
    FrameCipher& operator=(const FrameCipher&) = delete;

    void encrypt(std::vector<std::byte>& message);
    // False: this is not what the other side encrypted next.
    bool decrypt(std::vector<std::byte>& message);

  private:
    struct Direction {
        std::array<std::byte, 32> key{};
        std::uint64_t number = 0;
    };
    Direction out_, in_;
};

}  // namespace offpath::control
