// Who may attach from afar: both sides of a remote attach prove that they know the secret of the job, which
// is made from the key that daemons and launchers share. HMAC-SHA256 and random numbers are libsodium's. Keys
// and secrets are wiped when they end. Pure functions but for those that read or draw; thread-safe.
//
// Handshake: daemon: Challenge{nonce d}; client: RemoteHello{nonce c, MAC}; daemon: RemoteWelcome{MAC}. Each
// MAC covers d, c and the whole message before the MAC, its kind included, so that none can be used in
// another handshake or for the other direction. The direct path's handshake, with a secret that the proxy has
// drawn for a rank: client: DirectCall; proxy: Challenge{nonce d}; client: DirectProof{nonce c, MAC}; proxy:
// DirectWelcome{MAC}.
#pragma once

#include "base/status.h"
#include "control/messages.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace offpath::control {

constexpr std::size_t min_key_bytes = 32;
// What a daemon answers to whoever does not know the key.
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

// The bytes of a file, all of them. access: it belongs to somebody who is neither this user nor root, or
// group or others may read or write it; invalid: not a regular file, too short or too long; unavailable: it
// cannot be opened. `problem` names the file and what is accepted.
Status read_key_file(const std::string& path, Key& key, std::string& problem);
// What can be read from a descriptor up to its end, e.g. of a pipe. Does not close it.
Status read_key_descriptor(int fd, Key& key, std::string& problem);

// Of one job, made at one moment (RemoteHello::issued): daemons take it for some time after that only.
Secret job_secret(const Key& key, std::uint64_t job_high, std::uint64_t job_low, std::uint64_t issued);
// What the job's proxies prove to each other; made from the job's secret.
Secret fabric_secret(const Secret& job);
Secret draw_secret();
Nonce draw_nonce();
std::uint64_t draw_token();  // never 0

// The MAC that belongs into `message`, a RemoteHello, RemoteWelcome, DirectProof or DirectWelcome.
Mac handshake_mac(const Secret& secret, const Nonce& daemon, const Nonce& client, const Message& message);
// In constant time.
bool same(const Mac& a, const Mac& b);
void wipe(std::span<std::byte> bytes);

}  // namespace offpath::control
