// What engines of different proxies say to each other: the headers of the transport's messages. Fixed sizes,
// little endian, naturally aligned, no pointers. A Stamp goes first and says who speaks; then comes a header,
// which starts with its kind; read() checks the length against it. Tokens name a transfer at the engine that
// issued them. They are random, and stand for one transfer only, so that a late message for a transfer that
// is gone is recognised. A token counts only in a message of the proxy that the transfer is with.
//
// An exchange that both schedules know of needs no request: the receiver's `ready` goes out when its recv op
// starts, the sender's `chunk`s when both are there; small ones travel in one `eager`. Basic sends announce
// themselves with `request`, which the receiver's matcher answers with `grant`; mail likewise. put and get of
// schedules ask the peer's instance likewise.
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

// Payloads up to this size travel with their header, in planned and basic exchanges alike. Same on all
// proxies of a job.
constexpr std::uint64_t eager_bytes = 4 << 10;

// As the team of an abort: the source, here a rank of the job, is gone, and with it everything in the job
// that waits for it.
constexpr std::uint64_t every_team = UINT64_MAX;

enum class Kind : std::uint32_t {
    eager = 1,         // payload of a planned send
    ready,             // a planned recv waits for its payload
    chunk,             // a piece of payload, addressed by token
    signal,            // for an instance
    put_request,       // asks the peer's instance for a place to put
    get_request,       // asks the peer's instance to send
    request,           // a basic send, with its payload if that is small
    grant,             // sender may send: answers put_request and request
    finished,          // the receiver has everything (or the exchange ended with an error)
    abort,             // an instance failed at a peer
    mail,              // a message with a key of its own; answered by grant
    mail_store,        // take in the mail of this key, if no receive has met it
    broken,            // the sender could not send the rest: the receiver waits for nothing more
    hello,             // nothing: the way between two proxies is made before it is needed
    beat,              // asks whether the other proxy still goes round, or answers that
    one_sided = 40,    // an operation on a window
    one_sided_answer,  // it is done at the target
    one_sided_bundle,  // several of these two
};

enum class BeatWord : std::uint32_t {
    question = 0,
    answer,
    farewell,  // an answer: the asker counts as lost here, for this job
};

// Before every message between two proxies. The pass proves that the sender knows the secret of the job for
// which it speaks: pass_of() makes it from that secret, the job and the numbers of both proxies.
struct Stamp {
    std::uint64_t proxy;  // the sender's number
    std::uint64_t pass;
};

// Which team, who speaks to whom. Team ranks.
struct Route {
    std::uint64_t job_high, job_low;
    std::uint64_t team;
    std::uint32_t source, dest;
    friend bool operator==(const Route&, const Route&) = default;
};

// One layout serves all planned kinds and `request`; what a field means for a kind:
struct Exchange {
    Kind kind;
    std::uint32_t sequence;  // instance; request: number of the message from source to dest
    Route route;
    std::uint64_t tag;     // eager, ready, request: tag; signal: its id; put/get_request: slot; mail: key.low
    std::uint64_t offset;  // put/get_request: in the slot; ready: chunk limit of the receiver; abort: status;
                           // mail: key.high
    std::uint64_t bytes;   // of the whole payload
    std::uint64_t token;  // ready, get_request: of the receiving transfer; put_request, request, mail: of the
                          // sending one
};
struct Chunk {
    Kind kind;
    std::uint32_t bytes;
    std::uint64_t token;   // receiving transfer
    std::uint64_t offset;  // in its payload
};
struct Grant {
    Kind kind;
    std::uint32_t chunk_limit;
    std::uint64_t sender;    // token of the sending transfer
    std::uint64_t receiver;  // token of the receiving one
    std::uint64_t bytes;     // that it takes
};
// finished, broken: the end of a transfer, told to its other half.
struct Finished {
    Kind kind;
    std::int32_t status;
    std::uint64_t token;  // finished: of the sending transfer; broken: of the receiving one
};
struct Hello {
    Kind kind;
    std::uint32_t unused;
    std::uint64_t job_high, job_low;
};
struct Beat {
    Kind kind;
    BeatWord word;
    std::uint64_t job_high, job_low;
};
// A put, get, update or lock of a window. Payload: the segments (rma::Segment) where there are several, then
// the operands where `sender` is 0.
struct OneSidedHeader {
    Kind kind;
    std::uint32_t sequence;  // of the messages of this kind from source to dest for this window
    Route route;
    std::uint64_t window;
    std::uint64_t offset;    // of a single segment
    std::uint64_t bytes;     // at the target
    std::uint64_t part;      // whom to answer
    std::uint64_t sender;    // token of the transfer that has the operands, or 0
    std::uint64_t receiver;  // token of the transfer that takes the result, or 0
    std::uint8_t operation, type, reduction;
    std::uint8_t ordered;  // 1: held back until all before it from this source is done
    std::uint32_t segments;
};
struct OneSidedAnswer {
    Kind kind;
    std::int32_t status;
    std::uint64_t part;
};
// The only message beside chunks that may be fetched. Payload: as many times a Bundled, the header that it
// tells of, and that message's payload.
struct OneSidedBundle {
    Kind kind;
    std::uint32_t messages;
};
struct Bundled {
    std::uint16_t header_bytes, payload_bytes;
};
static_assert(sizeof(OneSidedHeader) == 96 && sizeof(OneSidedAnswer) == 16);
static_assert(sizeof(OneSidedBundle) == 8 && sizeof(Bundled) == 4 && sizeof(Stamp) == 16);
static_assert(sizeof(Route) == 32 && sizeof(Exchange) == 72 && sizeof(Chunk) == 24 && sizeof(Grant) == 32 &&
              sizeof(Finished) == 16 && sizeof(Hello) == 24 && sizeof(Beat) == 24);

template <typename Header>
std::span<const std::byte> bytes_of(const Header& header) {
    static_assert(std::is_trivially_copyable_v<Header>);
    return std::as_bytes(std::span<const Header, 1>(&header, 1));
}

// False when the header is not exactly of this type's size.
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

}  // namespace offpath::engine
