// The layout of a trace file: what one process writes, and python/offpath/tracing/files.py reads.
//
// A file is a header, then chunks of one size. Each chunk belongs to one thread and holds its records, oldest
// first. All words are in the machine's byte order; the magic number shows it. The header has the names that
// records refer to by number: first those of the kinds, in the order of Kind. So a reader needs no list of
// its own. A file is complete at any moment, also when its process has been killed: a chunk counts its
// records after they have been written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::trace {

// What a record is about. For each, what its words `what`, `other`, `id` and `bytes` hold.
enum class Kind : std::uint16_t {
    call,         // a call of MPI, on a rank: its name, the peer, -, its bytes; polls: `id` counts the calls
    handed_over,  // an operation from its start to the notice of its end, on a rank: its name, -, id, bytes
    wait,         // a rank waits for a device: -, -, -, -
    operation,    // an operation, on a device: its name, the rank that started it, id, bytes
    send,         // payload that leaves for another proxy: -, the low half of that proxy's number, id, bytes
    receive,      // payload that arrives from another proxy: the same
    copy,         // payload between ranks of one proxy: -, -, id, bytes
    reduce,       // vectors that a proxy combines: -, -, -, bytes
    kernel,       // a kernel of the program: -, the rank, id, -
    sleep,        // a proxy without work: -, -, -, -
    proxy,        // names a proxy: -, its index, its number, -
    decision,     // a collective that stayed on the host's MPI: its name, -, the number of the reason, bytes
    stayed,       // calls that did, counted: the reason, -, -, their number
    clock,  // on a rank, what to add to its clock to get that of rank 0: -, -, ns, by which it may be wrong
};
inline constexpr const char* kind_names[] = {"call",    "handed_over", "wait",   "operation", "send",
                                             "receive", "copy",        "reduce", "kernel",    "sleep",
                                             "proxy",   "decision",    "stayed", "clock"};

enum class Phase : std::uint16_t { begin, end, instant };

struct Record {
    std::uint64_t time_ns;  // CLOCK_MONOTONIC
    std::uint64_t id;       // ties begin and end; 0: the thread's latest begin of this kind
    std::uint64_t bytes;
    std::uint32_t other;
    std::uint16_t what;        // a name
    std::uint16_t kind_phase;  // kind * 4 + phase
};
static_assert(sizeof(Record) == 32);

struct ChunkHeader {
    std::uint64_t thread;
    std::uint64_t records;  // complete ones
    char name[48];          // of the thread
};
static_assert(sizeof(ChunkHeader) == 64);

inline constexpr std::uint64_t magic = 0x3143'4152'5450'464f;  // "OFPTRAC1", little-endian
inline constexpr std::size_t header_bytes = 16384;
inline constexpr std::size_t chunk_bytes = 128 << 10;
inline constexpr std::size_t records_per_chunk = (chunk_bytes - sizeof(ChunkHeader)) / sizeof(Record);

struct FileHeader {
    std::uint64_t magic;
    std::uint32_t header_bytes, chunk_bytes;
    std::uint64_t most_chunks;
    std::uint64_t chunks;                     // in use
    std::uint64_t dropped;                    // records for which there was no room
    std::uint64_t monotonic_ns, realtime_ns;  // one moment, on both clocks
    std::uint64_t process;
    std::uint32_t kinds;        // how many of the names are those of kinds
    std::uint32_t names_bytes;  // of the names, each with a zero at its end
    std::int32_t rank, ranks;   // -1: a device
    char boot[40];              // names the monotonic clock (machine_clock.h)
    char node[64];
    char program[64];
};
static_assert(sizeof(FileHeader) == 248);
inline constexpr std::size_t names_offset = 256;
inline constexpr std::size_t most_names_bytes = header_bytes - names_offset;

}  // namespace offpath::trace
