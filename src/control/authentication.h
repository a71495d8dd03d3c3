// Authentication of remote clients. In a remote attach both sides prove that they know the secret of the job,
// which is made from the key that daemons and launchers share. libsodium provides HMAC-SHA256 and random
// numbers. Keys and secrets are wiped when they end. The functions are pure, except those that read or draw;
// thread-safe.
//
// Handshake: daemon: Challenge{nonce d}; client: RemoteHello{nonce c, MAC}; daemon: RemoteWelcome{MAC}. Each
// MAC covers d, c and the whole message before the MAC, its kind included. It is therefore useless in another
// handshake or in the other direction.
//
// The direct path's handshake uses a secret that the proxy has drawn for a rank. client: DirectCall; proxy:
// Challenge{nonce d}; client: DirectProof{nonce c, MAC}; proxy: DirectWelcome{MAC}.
#pragma once

#include "base/status.h"
#include "control/messages.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace offpath::control {

constexpr std::size_t min_key_bytes = 32;
// A daemon's answer to a client that does not know the key.
constexpr const char* not_authenticated = "not authenticated";
constexpr std::size_t max_key_bytes = 4096;

class Key {
  public:
    Key() = default;
    explicit Key(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
    Key(Key&&) noexcept = default;
    Key& operator=(Key&& other) noexcept {
        bytes_.swap(other.bytes_);
        return *this;
    }
    ~Key();
    std::span<const std::byte> bytes() const { return bytes_; }
    bool empty() const { return bytes_.empty(); }

  private:
    std::vector<std::byte> bytes_;
};

// Reads all bytes of a file. access: its owner is neither this user nor root, or group or others may read or
// write it. invalid: not a regular file, too short or too long. unavailable: it cannot be opened. `problem`
// names the file and what is accepted.
Status read_key_file(const std::string& path, Key& key, std::string& problem);
// Reads a descriptor, e.g. of a pipe, up to its end. Does not close it.
Status read_key_descriptor(int fd, Key& key, std::string& problem);

// The secret of one job, issued at one moment (RemoteHello::issued). Daemons accept it only for some time
// after that.
Secret job_secret(const Key& key, std::uint64_t job_high, std::uint64_t job_low, std::uint64_t issued);
// The secret by which the job's proxies authenticate to each other, derived from the job's secret.
Secret fabric_secret(const Secret& job);
Secret draw_secret();
Nonce draw_nonce();
std::uint64_t draw_token();  // never 0

// The MAC that belongs in `message`, a RemoteHello, RemoteWelcome, DirectProof, DirectWelcome
// or TargetWelcome.
Mac handshake_mac(const Secret& secret, const Nonce& daemon, const Nonce& client, const Message& message);
// Compares in constant time.
bool same(const Mac& a, const Mac& b);
void wipe(std::span<std::byte> bytes);

}  // namespace offpath::control
