// The common form of all messages between engines, and the mover's own messages. Fixed sizes, little endian,
// naturally aligned, no pointers. A Stamp comes first and identifies the sending proxy. A header follows,
// which starts with its kind; read() checks the header's length. Each tenant defines the headers of its own
// kinds; the numbers of all kinds are listed here.
//
// A token names a transfer at the engine that issued it. It is random and stands for one transfer only, so a
// late message for a transfer that is gone is recognised. A token is valid only in a message from the proxy
// at the transfer's other end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace offpath::engine {

static_assert(std::endian::native == std::endian::little,
              "the wire format is little endian; big-endian devices need swaps here");

// Payloads up to this size travel with their header, in planned and basic exchanges alike. The value is the
// same on all proxies of a job.
constexpr std::uint64_t eager_bytes = 4 << 10;

enum class Kind : std::uint32_t {
    // Schedules (schedules/headers.h).
    eager = 1,    // payload of a planned send
    ready,        // a planned recv waits for its payload
    chunk,        // mover: a piece of payload, addressed by token
    signal,       // for an instance
    arrived,      // the payload of a planned send has arrived where it belongs
    request = 7,  // messages: a basic send, with its payload if that is small
    grant,        // mover: the sender may send; answers request and keyed
    finished,     // mover: the receiver needs no more of the payload, or the exchange ended with an error
    abort,        // an instance failed at a peer
    // Messages (messages/headers.h).
    keyed,        // a message with a key of its own; answered by grant
    keyed_store,  // take in the message of this key, if no receive has met it
    // The mover and its peers.
    broken,     // the sender could not send the rest: the receiver waits for nothing more
    hello,      // nothing: the way between two proxies is made before it is needed
    beat,       // asks whether the other proxy still goes round, or answers that
    rank_gone,  // a rank of the job has gone, and with it everything in the job that waits for it
    // Windows (onesided/headers.h).
    one_sided = 40,    // an operation on a window
    one_sided_answer,  // it is done at the target
    one_sided_bundle,  // several of these two
};

// Precedes every message between two proxies. The pass proves that the sender knows the secret of the job for
// which it speaks, and this version of the wire. pass_of() computes it from that secret, the job, the numbers
// of both proxies and the version.
struct Stamp {
    std::uint64_t proxy;  // the sender's number
    std::uint64_t pass;
};

// The team, the sender and the receiver, as team ranks.
struct Route {
    std::uint64_t job_high, job_low;
    std::uint64_t team;
    std::uint32_t source, dest;
    friend bool operator==(const Route&, const Route&) = default;
};

// The start of every header from one rank of a team to another.
struct Routed {
    Kind kind;
    std::uint32_t sequence;  // each tenant defines what it counts
    Route route;
};

struct Chunk {
    Kind kind;
    std::uint32_t bytes;
    std::uint64_t token;       // receiving transfer
    std::uint64_t offset;      // in its payload
    std::uint32_t copies = 0;  // that the sending proxy has made of it
    std::uint32_t unused = 0;
};
struct Grant {
    Kind kind;
    std::uint32_t chunk_limit;
    std::uint64_t sender;    // token of the sending transfer
    std::uint64_t receiver;  // token of the receiving one
    std::uint64_t bytes;     // how many the receiver takes
};
// finished, broken: report the end of a transfer to its other half.
struct Finished {
    Kind kind;
    std::int32_t status;
    std::uint64_t token;  // finished: of the sending transfer; broken: of the receiving one
};
struct PeerHello {
    Kind kind;
    std::uint32_t unused;
    std::uint64_t job_high, job_low;
};
enum class BeatWord : std::uint32_t {
    question = 0,
    answer,
    farewell,  // an answer: the asker counts as lost here, for this job
};
struct Beat {
    Kind kind;
    BeatWord word;
    std::uint64_t job_high, job_low;
};
struct RankGone {
    Kind kind;
    std::uint32_t job_rank;
    std::uint64_t job_high, job_low;
};
static_assert(sizeof(Stamp) == 16 && sizeof(Route) == 32 && sizeof(Routed) == 40 && sizeof(Chunk) == 32 &&
              sizeof(Grant) == 32 && sizeof(Finished) == 16 && sizeof(PeerHello) == 24 &&
              sizeof(Beat) == 24 && sizeof(RankGone) == 24);

template <typename Header>
std::span<const std::byte> bytes_of(const Header& header) {
    static_assert(std::is_trivially_copyable_v<Header>);
    return std::as_bytes(std::span<const Header, 1>(&header, 1));
}

// False when the size is not exactly that of the header type.
template <typename Header>
bool read(std::span<const std::byte> bytes, Header& header) {
    if (bytes.size() != sizeof(Header)) return false;
    std::memcpy(&header, bytes.data(), sizeof(Header));
    return true;
}

inline Kind kind_of(std::span<const std::byte> bytes) {
    std::uint32_t kind = 0;
    if (bytes.size() >= sizeof(kind)) std::memcpy(&kind, bytes.data(), sizeof(kind));
    return static_cast<Kind>(kind);
}

// Whether headers of this kind start with a Routed.
inline bool is_routed(Kind kind) {
    switch (kind) {
        case Kind::eager:
        case Kind::ready:
        case Kind::signal:
        case Kind::arrived:
        case Kind::abort:
        case Kind::request:
        case Kind::keyed:
        case Kind::keyed_store:
        case Kind::one_sided:
            return true;
        default:
            return false;
    }
}

}  // namespace offpath::engine
