// Messages on the socket between a client and its daemon: attach, regions, goodbye. Every message is
//   u32 magic "OFPM", u16 version, u16 kind, body
// in little-endian fields of fixed size. This header is the same in all versions, so that two versions can at
// least report the mismatch. Local attach: a message is a datagram of a SOCK_SEQPACKET socket, which may
// carry descriptors. Remote attach: u32 length and message, over TCP (message_socket.h). Pure functions;
// decode_message trusts nothing.
//
// Each message lists its fields once, as commands do (base/field_lists.h). `text` is a string for people,
// which is cut to its limit. `problem` says what is wrong with decoded values; empty: nothing.
#pragma once

#include "base/protocol_version.h"
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

using offpath::protocol_version;
constexpr std::size_t max_message_bytes = 48 << 10;
constexpr std::size_t max_text_bytes = 512;  // of most texts for people

using Nonce = std::array<std::byte, 16>;
// The secret of a job, or of one of its ranks. Trivially copyable, as the bootstrap's records are. Code that
// keeps one for long must wipe it.
using Secret = std::array<std::byte, 32>;
// HMAC-SHA256 under the job's secret. It covers the handshake's nonces and the message except this field,
// which is the last one (authentication.h).
using Mac = std::array<std::byte, 32>;

// How the client wants its ordinary memory to be reached.
enum class BackEndRequest : std::uint8_t { automatic = 0, map = 2, cma = 3, staged = 4 };

// What the client wants of the daemon: a session with a proxy, a target host (target/records.h), or to know
// what target regions would find.
enum class Purpose : std::uint8_t { session = 0, target = 1, target_facts = 2 };

// client -> daemon, first.
struct Hello {
    std::uint64_t job_high = 0, job_low = 0;
    std::uint32_t job_rank = 0, job_size = 1;
    std::uint32_t pid = 0;  // for people; over a unix socket the kernel's credentials decide
    BackEndRequest back_end = BackEndRequest::automatic;
    // A word of the client's memory and its value. The daemon uses them to test whether it may read there.
    std::uint64_t probe_address = 0, probe_value = 0;
    // The secret by which the job's proxies authenticate to each other. Zeros for remote attach: the daemon
    // derives it from the job's secret.
    Secret fabric{};
    Purpose purpose = Purpose::session;
    static void fields(auto& self, auto&& each) {
        each(self.job_high, self.job_low, self.job_rank, self.job_size, self.pid, self.back_end,
             self.probe_address, self.probe_value, self.fabric, self.purpose);
    }
    std::string problem() const;
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
    // Where other ranks of the job reach this proxy without their own, and the secret that they need for it.
    // Empty where they cannot.
    std::vector<std::byte> direct;
    Secret direct_secret{};
    static void fields(auto& self, auto&& each) {
        each(self.proxy, self.proxy_index, self.back_end, self.progress, self.daemon_pid, self.staging);
        each.text(self.node, max_text_bytes);
        each.text(self.fabric, max_text_bytes);
        each.list(self.address, max_address_bytes);
        each.list(self.direct, max_direct_address_bytes);
        each(self.direct_secret);
    }
    friend bool operator==(const Welcome&, const Welcome&) = default;
};

// daemon -> client: a refusal, or the end of a session. The daemon then closes the socket.
struct Refusal {
    Status status = Status::unavailable;
    std::string text;
    static void fields(auto& self, auto&& each) {
        each(self.status);
        each.text(self.text, max_text_bytes);
    }
    friend bool operator==(const Refusal&, const Refusal&) = default;
};

// client -> daemon: registers a region. Its memfd comes with the message; the client has mapped it at
// `address`. The client chooses ids; it never uses 0 and never reuses one.
struct RegisterRegion {
    std::uint64_t id = 0, address = 0, bytes = 0;
    static void fields(auto& self, auto&& each) { each(self.id, self.address, self.bytes); }
    std::string problem() const;
    friend bool operator==(const RegisterRegion&, const RegisterRegion&) = default;
};

// daemon -> client: the answer to RegisterRegion, in order.
struct RegionReply {
    std::uint64_t id = 0;
    Status status = Status::ok;
    std::uint8_t back_end = 0, progress = 0;
    static void fields(auto& self, auto&& each) { each(self.id, self.status, self.back_end, self.progress); }
    friend bool operator==(const RegionReply&, const RegionReply&) = default;
};

// client -> daemon: the client has put the pages of [address, address + bytes) of its ordinary memory into
// the memory file that comes with the message, each at its address. The answer is a RegionReply.
struct SharePages {
    std::uint64_t id = 0, address = 0, bytes = 0;
    static void fields(auto& self, auto&& each) { each(self.id, self.address, self.bytes); }
    std::string problem() const;
    friend bool operator==(const SharePages&, const SharePages&) = default;
};

// client -> daemon: revokes a region. The RegionReply comes once nothing touches the region any more.
struct RevokeRegion {
    std::uint64_t id = 0;
    static void fields(auto& self, auto&& each) { each(self.id); }
    friend bool operator==(const RevokeRegion&, const RevokeRegion&) = default;
};

// client -> daemon: detach; nothing is outstanding. The daemon closes the socket.
struct Goodbye {
    static void fields(auto&, auto&&) {}
    friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// Remote attach. daemon -> client: the first message on every connection; it reveals nothing. Challenge,
// RemoteHello and DirectCall start with a byte-order mark and the size of a machine word, which the decoder
// compares with its own.
struct Challenge {
    Nonce nonce{};
    static void fields(auto& self, auto&& each) {
        each.machine();
        each(self.nonce);
    }
    friend bool operator==(const Challenge&, const Challenge&) = default;
};

// client -> daemon, the answer to a Challenge.
struct RemoteHello {
    Hello hello;               // the probe is not used
    std::uint64_t issued = 0;  // when the job's secret was made: seconds since 1970, by the maker's clock
    Nonce nonce{};
    std::vector<std::byte> link;  // address of the client's end of the link
    Mac mac{};
    static void fields(auto& self, auto&& each) {
        each.machine();
        Hello::fields(self.hello, each);
        each(self.issued, self.nonce);
        each.list(self.link, max_link_address_bytes);
        each(self.mac);
    }
    std::string problem() const { return hello.problem(); }
    friend bool operator==(const RemoteHello&, const RemoteHello&) = default;
};

// daemon -> client, the answer to a RemoteHello with the right MAC.
struct RemoteWelcome {
    Welcome welcome;              // without staging area
    std::uint64_t token = 0;      // names the session in messages of the link
    bool imports = false;         // the device accepts RegisterExported
    std::vector<std::byte> link;  // address of the proxy's end of the link
    Mac mac{};
    static void fields(auto& self, auto&& each) {
        Welcome::fields(self.welcome, each);
        each(self.token, self.imports);
        each.list(self.link, max_link_address_bytes);
        each(self.mac);
    }
    friend bool operator==(const RemoteWelcome&, const RemoteWelcome&) = default;
};

// Both ways, over TCP only: a sign of life (MessageSocket::tend).
struct KeepAlive {
    static void fields(auto&, auto&&) {}
    friend bool operator==(const KeepAlive&, const KeepAlive&) = default;
};

// client -> daemon: a region given by its exported registration. Otherwise as RegisterRegion.
struct RegisterExported {
    std::uint64_t id = 0, address = 0, bytes = 0;
    std::vector<std::byte> blob;
    static void fields(auto& self, auto&& each) {
        each(self.id, self.address, self.bytes);
        each.list(self.blob, max_blob_bytes);
    }
    std::string problem() const;
    friend bool operator==(const RegisterExported&, const RegisterExported&) = default;
};

// client -> daemon: loads the library and looks up the symbol, after all kernels of the stream that were
// started before. The client chooses ids; it never uses 0 and never reuses one.
struct LoadKernel {
    std::uint64_t id = 0;
    std::string path, symbol;
    std::uint32_t stream = 0;   // below max_kernel_streams
    std::uint32_t seconds = 0;  // that a run may take; 0: the daemon's limit
    static void fields(auto& self, auto&& each) {
        each(self.id);
        each.list(self.path, max_path_bytes);
        each.list(self.symbol, max_symbol_bytes);
        each(self.stream, self.seconds);
    }
    std::string problem() const;
    friend bool operator==(const LoadKernel&, const LoadKernel&) = default;
};

// daemon -> client: the answer to LoadKernel, in order. `text` explains an error.
struct KernelReply {
    std::uint64_t id = 0;
    Status status = Status::ok;
    std::string text;
    static void fields(auto& self, auto&& each) {
        each(self.id, self.status);
        each.text(self.text, max_text_bytes);
    }
    friend bool operator==(const KernelReply&, const KernelReply&) = default;
};

// The direct path (rma/direct.h), over a separate transport. client -> proxy, first: where to send the
// answer.
struct DirectCall {
    std::vector<std::byte> address;
    static void fields(auto& self, auto&& each) {
        each.machine();
        each.list(self.address, max_direct_address_bytes);
    }
    friend bool operator==(const DirectCall&, const DirectCall&) = default;
};

// client -> proxy, the answer to a Challenge. It proves that rank `rank` of the job knows the secret of rank
// `target`, which the proxy serves.
struct DirectProof {
    Nonce challenge{};
    Nonce nonce{};
    std::uint64_t job_high = 0, job_low = 0;
    std::uint32_t rank = 0, target = 0;
    Mac mac{};
    static void fields(auto& self, auto&& each) {
        each(self.challenge, self.nonce, self.job_high, self.job_low, self.rank, self.target, self.mac);
    }
    friend bool operator==(const DirectProof&, const DirectProof&) = default;
};

// proxy -> client, the answer to a valid proof.
struct DirectWelcome {
    std::uint64_t token = 0;  // names the connection in requests
    Mac mac{};
    static void fields(auto& self, auto&& each) { each(self.token, self.mac); }
    friend bool operator==(const DirectWelcome&, const DirectWelcome&) = default;
};

// What the daemon keeps of the images of target regions.
struct ImageFacts {
    std::uint32_t images = 0;
    std::uint64_t bytes = 0, limit_bytes = 0;
    std::uint64_t found = 0, dropped = 0;  // times that an image was there for a program; images dropped
    static void fields(auto& self, auto&& each) {
        each(self.images, self.bytes, self.limit_bytes, self.found, self.dropped);
    }
    friend bool operator==(const ImageFacts&, const ImageFacts&) = default;
};

// daemon -> client, the answer to a Hello for a target. Descriptor, local attach only: the memory of the
// line. After it, the socket is the target host's. Without a descriptor, over a unix socket: only the facts.
struct TargetWelcome {
    std::string node, architecture;  // as uname says it
    std::uint32_t cpus = 0;          // that regions may run on
    bool reads_program = false;      // the host reads and writes the program's memory itself
    std::uint32_t seconds = 0;       // that regions may take if the program sets no limit; 0: no limit
    Nonce image_nonce{};             // for the program's proofs that it has its images (target/image_name.h)
    ImageFacts images;
    Mac mac{};  // remote attach only
    static void fields(auto& self, auto&& each) {
        each.text(self.node, max_text_bytes);
        each.text(self.architecture, max_text_bytes);
        each(self.cpus, self.reads_program, self.seconds, self.image_nonce);
        ImageFacts::fields(self.images, each);
        each(self.mac);
    }
    friend bool operator==(const TargetWelcome&, const TargetWelcome&) = default;
};

// daemon -> client, unasked: what kernels have printed to standard output or standard error, or why one
// failed. At most max_kernel_texts are on the way.
enum class KernelTextKind : std::uint8_t { output = 1, error_output = 2, failure = 3 };
struct KernelText {
    KernelTextKind kind = KernelTextKind::output;
    std::string text;
    static void fields(auto& self, auto&& each) {
        each(self.kind);
        each.text(self.text, max_kernel_text_bytes);
    }
    std::string problem() const;
    friend bool operator==(const KernelText&, const KernelText&) = default;
};

// client -> daemon: how many KernelTexts the client has taken so far.
struct KernelTextsTaken {
    std::uint64_t count = 0;
    static void fields(auto& self, auto&& each) { each(self.count); }
    friend bool operator==(const KernelTextsTaken&, const KernelTextsTaken&) = default;
};

// client -> daemon, and daemon -> client: the question is answered by itself, after everything that kernels
// printed before it, and the reasons of all failures before it.
struct KernelTextsAsked {
    std::uint64_t number = 0;
    static void fields(auto& self, auto&& each) { each(self.number); }
    friend bool operator==(const KernelTextsAsked&, const KernelTextsAsked&) = default;
};

// client -> daemon, and daemon -> client with the values: of the large payloads that have come for this
// client from other proxies, the bytes that proxies copied on the way not at all, once, or more often.
struct CopiesAsked {
    std::uint64_t direct = 0, once = 0, more = 0;
    static void fields(auto& self, auto&& each) { each(self.direct), each(self.once), each(self.more); }
    friend bool operator==(const CopiesAsked&, const CopiesAsked&) = default;
};

using Message = std::variant<Hello, Welcome, Refusal, RegisterRegion, RegionReply, RevokeRegion, Goodbye,
                             Challenge, RemoteHello, RemoteWelcome, KeepAlive, RegisterExported, LoadKernel,
                             KernelReply, DirectCall, DirectProof, DirectWelcome, TargetWelcome, KernelText,
                             KernelTextsTaken, KernelTextsAsked, CopiesAsked, SharePages>;

std::vector<std::byte> encode_message(const Message& message);
// protocol: not a message. version: a message of another version, byte order or word size. `message` is set
// on ok only; `problem` says what was wrong and what is accepted.
Status decode_message(std::span<const std::byte> bytes, Message& message, std::string& problem);

}  // namespace offpath::control
