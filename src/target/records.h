// The records that a program and its target host exchange over a line (line.h). A *target host* is a process
// on the device: it holds the program's device images and device memory, and it runs their functions.
//
// A record is a Head, the fixed body of its kind, and a payload: the rest of the record. Requests of one
// stream are executed in order; different streams may run side by side. The host answers FindImage,
// LoadImage, LoadLibrary, FindSymbols, Allocate, MapFile, Part and Unify as soon as it has read them,
// whatever their stream.
//
// Both sides are little-endian 64-bit machines, which the handshake has checked; fields are copied as they
// lie in memory. The host serves one program, which may make it do anything, and trusts its addresses as a
// thread trusts its own. The program trusts nothing that the host says beyond its own memory: see
// program/answers.h. A program that has sent Unify trusts it with all of its memory.
#pragma once

#include "target/image_name.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace offpath::target {

constexpr std::size_t max_arguments = 1024;    // of a call
constexpr std::size_t max_symbols = 1 << 16;   // in one FindSymbols
constexpr std::size_t inline_bytes = 4096;     // data up to this size travels with its request or answer
constexpr std::size_t data_piece = 256 << 10;  // the most payload of one Data record
constexpr std::uint64_t max_image_bytes = 1 << 30;

constexpr std::size_t max_fetch_bytes = 16 << 20;

struct AddressRange {
    std::uint64_t begin = 0, end = 0;
};

enum class Kind : std::uint16_t {
    // program -> host
    find_image = 1,
    load_image = 2,
    find_symbols = 3,
    allocate = 4,
    release = 5,
    put = 6,
    put_from = 7,
    get = 8,
    copy = 9,
    call = 10,
    sync = 11,
    load_library = 12,
    unify = 13,
    fetched = 14,
    map_file = 15,
    part = 16,
    // host -> program
    done = 32,
    data = 33,
    output = 34,
    lost = 35,
    fetch = 36,
    store = 37,
    beat = 38,
    join = 39,
};

struct Head {
    std::uint64_t bytes = 0;   // of body and payload
    std::uint64_t number = 0;  // of the request that is answered, or that wants an answer; 0: none
    std::uint32_t stream = 0;
    Kind kind = Kind::done;
    std::uint16_t unused = 0;
};
static_assert(sizeof(Head) == 24);

// Loads an image that the host, or its daemon, has. `proof` is for the nonce of the program's welcome.
// Answer: Done with the module's number. unavailable: neither has it. memory: no host accepts so large an
// image.
struct FindImage {
    static constexpr Kind kind = Kind::find_image;
    ImageName name{};
    ImageProof proof{};
    std::uint64_t bytes = 0;
};
// Payload: the image, a shared library. Answer: Done with the module's number. protocol: the payload is not
// the image of that name.
struct LoadImage {
    static constexpr Kind kind = Kind::load_image;
    ImageName name{};
};
// Payload: NAME, of small letters and dashes. Loads liboffpath-NAME.so, which is beside the host's other
// libraries, so that images loaded later find its symbols. Answer: Done with the module's number.
struct LoadLibrary {
    static constexpr Kind kind = Kind::load_library;
};
// Payload: names, each ended by a zero. Answer: Done with an address for each, 0 where there is none.
struct FindSymbols {
    static constexpr Kind kind = Kind::find_symbols;
    std::uint64_t module = 0, count = 0;
};
// Answer: Done with the address. memory: there is not enough.
struct Allocate {
    static constexpr Kind kind = Kind::allocate;
    std::uint64_t bytes = 0;
};
// Maps a memory file of a program on this system, which has it open as `descriptor`, at `address`, or
// anywhere if that is 0. Answer: Done with the address. unavailable: the host has memory of its own there.
// access: it cannot open the file, or finds another one.
struct MapFile {
    static constexpr Kind kind = Kind::map_file;
    std::uint64_t descriptor = 0, device = 0, inode = 0, bytes = 0, address = 0;
};
// From now on what is written to a mapped file at this address stays in the host. The file's contents stay
// there. Answer: Done.
struct Part {
    static constexpr Kind kind = Kind::part;
    std::uint64_t address = 0;
};
// Of what Allocate or MapFile returned. Takes effect after the earlier requests of its stream. No answer.
struct Release {
    static constexpr Kind kind = Kind::release;
    std::uint64_t address = 0;
};
// Payload: the data.
struct Put {
    static constexpr Kind kind = Kind::put;
    std::uint64_t address = 0;
};
// The host reads the program's memory itself. If the request has a number, the program may Join.
struct PutFrom {
    static constexpr Kind kind = Kind::put_from;
    std::uint64_t address = 0, source = 0, bytes = 0;
};
// The host writes the program's memory itself, or sends Data records.
struct Get {
    static constexpr Kind kind = Kind::get;
    std::uint64_t address = 0, destination = 0, bytes = 0;
};
struct Copy {
    static constexpr Kind kind = Kind::copy;
    std::uint64_t to = 0, from = 0, bytes = 0;
};
// Payload: the arguments, of eight bytes each.
struct Call {
    static constexpr Kind kind = Kind::call;
    std::uint64_t function = 0;
};
// From now on functions find the program's memory at its own addresses. Payload: AddressRanges, what the
// program has mapped. Answer: Done. unavailable: the host has memory of its own there; another may not.
struct Unify {
    static constexpr Kind kind = Kind::unify;
};
// The answer to the Fetch of that number. Payload: what could be read, from its address on.
struct Fetched {
    static constexpr Kind kind = Kind::fetched;
};
// Answer: Done when everything before it in its stream is done, with the first error of these. The error is
// then over, unless the sync keeps it for the next one.
struct Sync {
    static constexpr Kind kind = Kind::sync;
    std::uint32_t keeps_error = 0;
    std::uint32_t unused = 0;
};

// Payload: the text of an error, or what the kind of request says.
struct Done {
    static constexpr Kind kind = Kind::done;
    std::int32_t status = 0;
    std::uint32_t unused = 0;
    std::uint64_t value = 0;
};
// `number` is that of the Get. Payload: bytes for the program's memory, at `destination`.
struct Data {
    static constexpr Kind kind = Kind::data;
    std::uint64_t destination = 0;
};
// Payload: text that was written to descriptor 1 or 2.
struct Output {
    static constexpr Kind kind = Kind::output;
    std::uint64_t descriptor = 1;
};
// The host ends because of a signal; 0: because a function called exit(). Payload: the name of the function.
struct Lost {
    static constexpr Kind kind = Kind::lost;
    std::uint64_t signal = 0, address = 0;  // the address of a bad access, else 0
};
// The host's process is alive, whatever its functions do. Sent about twice a second, unless the program has
// not read what was sent before.
struct Beat {
    static constexpr Kind kind = Kind::beat;
    std::uint64_t pid = 0;
};
// The host begins the PutFrom or Get of that number, and the program may take pieces of it (joint_copy.h).
// The host's process has the number `pid`, and its token at `token`.
struct Join {
    static constexpr Kind kind = Kind::join;
    std::uint32_t place = 0, generation = 0;
    std::uint64_t pid = 0, token = 0;
};
// After Unify, where the host does not reach the program's memory itself: wants bytes of it.
struct Fetch {
    static constexpr Kind kind = Kind::fetch;
    std::uint64_t address = 0, bytes = 0;
};
// Then also: bytes for the program's memory, before the Done of the function that wrote them. Payload:
// `count` Pieces, then their bytes.
struct Store {
    static constexpr Kind kind = Kind::store;
    std::uint64_t count = 0;
};
struct Piece {
    std::uint64_t address = 0, bytes = 0;
};
constexpr std::size_t max_stored_pieces = 1024;
constexpr std::size_t max_stored_bytes = 256 << 10;  // in one record

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_bytes(std::span(&value, 1));
}

}  // namespace offpath::target
