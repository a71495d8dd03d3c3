// Messages on the socket between a client and its daemon: attach, regions, goodbye. Every message is
//   u32 magic "OFPM", u16 version, u16 kind, body
// in little-endian fields of fixed size, and this header stays as it is in all versions, so that two versions
// can at least tell each other so. Local attach: one message is one datagram of a SOCK_SEQPACKET socket, and
// descriptors travel beside it. Remote attach: u32 length and message, over TCP (message_socket.h). Pure
// functions; decode_message trusts nothing.
#pragma once

#include "base/status.h"
#include "control/limits.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace offpath::control {

constexpr std::uint16_t protocol_version = 8;
constexpr std::size_t max_message_bytes = 48 << 10;

using Nonce = std::array<std::byte, 16>;
// Of one job, or of one rank of it. Trivially copyable, as the bootstrap's records are; whoever holds one for
// long wipes it.
using Secret = std::array<std::byte, 32>;
// HMAC-SHA256 with the job's secret, over the nonces of the handshake and the message but for this field,
// which is the last one (authentication.h).
using Mac = std::array<std::byte, 32>;

// What the client would like its ordinary memory to be reached by.
enum class BackEndRequest : std::uint8_t { automatic = 0, map = 2, cma = 3, staged = 4 };

// client -> daemon, first.
struct Hello {
    std::uint64_t job_high = 0, job_low = 0;
    std::uint32_t job_rank = 0, job_size = 1;
    std::uint32_t pid = 0;  // for people; over a unix socket the kernel's credentials count
    BackEndRequest back_end = BackEndRequest::automatic;
    // A word of the client's memory and its value, for the daemon to try whether it may read there.
    std::uint64_t probe_address = 0, probe_value = 0;
    // What the job's proxies prove to each other. Zeros for remote attach: the daemon makes it from the
    // secret of the job.
    Secret fabric{};
    friend bool operator==(const Hello&, const Hello&) = default;
};

// daemon -> client, the answer. Descriptors: channel memory, doorbell; with `staging` two more: the staging
// area and its bell.
struct Welcome {
    std::uint64_t proxy = 0;  // names the proxy in the whole job
    std::uint32_t proxy_index = 0;
    std::uint8_t back_end = 0;  // of ordinary memory; offpath_back_end_t
    std::uint8_t progress = 0;  // of ordinary memory; offpath_progress_t
    std::uint32_t daemon_pid = 0;
    bool staging = false;
    std::string node;
    std::string fabric;
    std::vector<std::byte> address;  // of the proxy's transport
    // Where other ranks of the job reach the proxy without their own, and what they must know for it; empty
    // where they cannot.
    std::vector<std::byte> direct;
    Secret direct_secret{};
    friend bool operator==(const Welcome&, const Welcome&) = default;
};

// daemon -> client: no, or no longer. The socket is closed behind it.
struct Refusal {
    Status status = Status::unavailable;
    std::string text;
    friend bool operator==(const Refusal&, const Refusal&) = default;
};

// client -> daemon: a region, with its memfd, which the client has mapped at `address`. Ids are the client's
// choice, never 0, never used twice.
struct RegisterRegion {
    std::uint64_t id = 0, address = 0, bytes = 0;
    friend bool operator==(const RegisterRegion&, const RegisterRegion&) = default;
};

// daemon -> client: the answer to RegisterRegion, in order.
struct RegionReply {
    std::uint64_t id = 0;
    Status status = Status::ok;
    std::uint8_t back_end = 0, progress = 0;
    friend bool operator==(const RegionReply&, const RegionReply&) = default;
};

// client -> daemon: let go of the region. Answered by a RegionReply once nothing touches it any more.
struct RevokeRegion {
    std::uint64_t id = 0;
    friend bool operator==(const RevokeRegion&, const RevokeRegion&) = default;
};

// client -> daemon: nothing is outstanding, detach me. The daemon closes the socket.
struct Goodbye {
    friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// Remote attach. daemon -> client, first, to whoever connects: it gives nothing away. Challenge and
// RemoteHello begin with a byte-order mark and the bytes of a machine word, which the decoder compares with
// this side's.
struct Challenge {
    Nonce nonce{};
    friend bool operator==(const Challenge&, const Challenge&) = default;
};

// client -> daemon, the answer to a Challenge.
struct RemoteHello {
    Hello hello;               // the probe is not used
    std::uint64_t issued = 0;  // when the job's secret was made: seconds since 1970, by the maker's clock
    Nonce nonce{};
    std::vector<std::byte> link;  // address of the client's end of the link
    Mac mac{};
    friend bool operator==(const RemoteHello&, const RemoteHello&) = default;
};

// daemon -> client, the answer to a RemoteHello with the right MAC.
struct RemoteWelcome {
    Welcome welcome;              // without staging area
    std::uint64_t token = 0;      // names the session in messages of the link
    bool imports = false;         // the device takes RegisterExported
    std::vector<std::byte> link;  // address of the proxy's end of the link
    Mac mac{};
    friend bool operator==(const RemoteWelcome&, const RemoteWelcome&) = default;
};

// Both ways, over TCP only: I am there (MessageSocket::tend).
struct KeepAlive {
    friend bool operator==(const KeepAlive&, const KeepAlive&) = default;
};

// client -> daemon: a region by its exported registration. Otherwise as RegisterRegion.
struct RegisterExported {
    std::uint64_t id = 0, address = 0, bytes = 0;
    std::vector<std::byte> blob;
    friend bool operator==(const RegisterExported&, const RegisterExported&) = default;
};

// client -> daemon: load the library and look the symbol up, after the kernels that were started before. Ids
// are the client's choice, never 0, never used twice.
struct LoadKernel {
    std::uint64_t id = 0;
    std::string path, symbol;
    friend bool operator==(const LoadKernel&, const LoadKernel&) = default;
};

// daemon -> client: the answer to LoadKernel, in order. `text` says why not.
struct KernelReply {
    std::uint64_t id = 0;
    Status status = Status::ok;
    std::string text;
    friend bool operator==(const KernelReply&, const KernelReply&) = default;
};

// The direct path (rma/direct.h), over a transport of its own. client -> proxy, first: where the answer goes.
struct DirectCall {
    std::vector<std::byte> address;
    friend bool operator==(const DirectCall&, const DirectCall&) = default;
};

// client -> proxy, the answer to a Challenge: rank `rank` of the job knows the secret of rank `target`, which
// the proxy serves.
struct DirectProof {
    Nonce challenge{};
    Nonce nonce{};
    std::uint64_t job_high = 0, job_low = 0;
    std::uint32_t rank = 0, target = 0;
    Mac mac{};
    friend bool operator==(const DirectProof&, const DirectProof&) = default;
};

// proxy -> client, the answer to a proof that is right.
struct DirectWelcome {
    std::uint64_t token = 0;  // names the connection in requests
    Mac mac{};
    friend bool operator==(const DirectWelcome&, const DirectWelcome&) = default;
};

using Message = std::variant<Hello, Welcome, Refusal, RegisterRegion, RegionReply, RevokeRegion, Goodbye,
                             Challenge, RemoteHello, RemoteWelcome, KeepAlive, RegisterExported, LoadKernel,
                             KernelReply, DirectCall, DirectProof, DirectWelcome>;

std::vector<std::byte> encode_message(const Message& message);
// protocol: not a message; version: a message of another version, byte order or word size. `message` is set
// on ok only; `problem` says what was wrong and what is accepted.
Status decode_message(std::span<const std::byte> bytes, Message& message, std::string& problem);

}  // namespace offpath::control
