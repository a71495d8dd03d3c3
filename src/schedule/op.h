// Ops: the nodes of a schedule. They are plain values and mean the same on a proxy, on the host and in the
// simulator.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::schedule {

using OpId = std::uint32_t;

// The numbers are those of the wire form.
enum class OpKind : std::uint8_t {
    copy = 1,  // dst <- src, both of this rank
    send = 4,  // src to the recv of `peer` with the same tag
    recv,      // dst <- the send of `peer` with the same tag
    reduce,    // dst <- dst (reduction) src, element by element
    signal,    // adds one to signal `tag` of `peer`
    wait,      // done when signal `tag` of this rank has reached `bytes`
    compute,   // makes call `tag` of the schedule (kernel_call.h): the device runs a kernel
};

// The numbers agree with offpath_type_t. A pair type is a value and an index, laid out as a C structure.
enum class DataType : std::uint8_t {
    none = 0,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float32,
    float64,
    complex64,
    complex128,
    bool8,
    long_double,
    complex_long_double,
    logical32,
    int32_int32,
    int16_int32,
    int64_int32,
    float32_int32,
    float64_int32,
    long_double_int32,
    float32_float32,
    float64_float64,
};
constexpr DataType last_data_type = DataType::float64_float64;

// Bytes from one element to the next: a power of two, at most 32. 0 when `type` is not a type.
std::uint32_t size_of(DataType type);
constexpr std::uint32_t most_element_bytes = 32;
// Whether its elements hold long doubles, whose format differs between architectures.
bool is_long_double(DataType type);

// The numbers agree with offpath_reduction_t.
enum class Reduction : std::uint8_t {
    none = 0,
    sum,
    product,
    minimum,
    maximum,
    band,
    bor,
    bxor,
    land,
    lor,
    lxor,
    minloc,
    maxloc,
};
constexpr Reduction last_reduction = Reduction::maxloc;

// Whether MPI defines the reduction for the type (MPI 3.1, chapter 5.9.2).
bool defined(DataType type, Reduction reduction);

// A position in one of the rank's own buffers that a schedule is started with.
struct BufferRef {
    std::uint32_t slot = 0;
    std::uint64_t offset = 0;
    friend bool operator==(const BufferRef&, const BufferRef&) = default;
};

constexpr std::uint32_t no_peer = UINT32_MAX;
// The limit on a slot's size. It is more than a process can map, and small enough that sums of sizes fit in
// 64 bits.
constexpr std::uint64_t max_slot_bytes = std::uint64_t{1} << 47;

struct Op {
    OpKind kind = OpKind::copy;
    DataType type = DataType::none;
    Reduction reduction = Reduction::none;
    std::uint32_t peer = no_peer;  // rank in the team
    std::uint64_t tag =
        0;  // send/recv: unique per peer and direction; signal/wait: the signal; compute: the call
    BufferRef src = {}, dst = {};
    std::uint64_t bytes = 0;  // wait: the count to reach
    friend bool operator==(const Op&, const Op&) = default;
};

// A schedule is started with one buffer per slot. User slots get an address at every start. Scratch slots are
// memory of the executor that lives for one run; their contents are undefined at its start.
enum class SlotKind : std::uint8_t { user = 1, scratch = 2 };
struct Slot {
    SlotKind kind = SlotKind::user;
    std::uint64_t bytes = 0;  // the smallest buffer that covers every op
    friend bool operator==(const Slot&, const Slot&) = default;
};

const char* to_string(OpKind kind);
// Describes an op in messages: "op 12 (send to rank 3, tag 7)".
std::string describe(OpId id, const Op& op);

}  // namespace offpath::schedule
