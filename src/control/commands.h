// Commands: the records that a client puts into its command ring. Every record is
//   u32 bytes (of the whole record), u16 kind, u16 zero, body
// in the byte order of the machine that both sides share. What may be longer than a record (ranks, teams,
// schedules, buffer lists) comes in parts, in order; the last one completes it. Encoding writes straight into
// the ring; decoding reads a private copy, checks everything and does not allocate: spans in a Command point
// into the record. Pure.
#pragma once

#include "base/message_key.h"
#include "base/status.h"
#include "control/command_fields.h"
#include "control/kernel_commands.h"
#include "control/window_commands.h"

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace offpath::control {

// A proxy of the job and its transport address.
struct AddProxy {
    std::uint64_t proxy = 0;
    std::span<const std::byte> address;
};
// Proxies of the job ranks first, first + 1, ...
struct Ranks {
    std::uint32_t first = 0;
    Packed<std::uint64_t> proxies;
};
// Job ranks of the team, those from place `first` on. Complete when first + ranks.size() == size.
struct CreateTeam {
    std::uint64_t team = 0;
    std::uint32_t rank = 0, size = 0, first = 0;
    Packed<std::uint32_t> ranks;
};
struct DestroyTeam {
    std::uint64_t team = 0;
};
// Part of an encoded schedule of `total` bytes, from `offset` on.
struct SchedulePart {
    std::uint64_t schedule = 0, total = 0, offset = 0;
    std::span<const std::byte> bytes;
};
struct ForgetSchedule {
    std::uint64_t schedule = 0;
};
// One start of a schedule on a team. `sequence` numbers the starts of the team on every rank alike. Complete
// when first + ranges.size() == buffers.
struct Start {
    std::uint64_t schedule = 0, team = 0;
    std::uint32_t sequence = 0, completion = 0, buffers = 0, first = 0;
    Packed<BufferRange> ranges;
};
struct BasicSend {
    std::uint64_t team = 0;
    std::uint32_t peer = 0, tag = 0, completion = 0;
    BufferRange range;
};
struct BasicRecv {
    std::uint64_t team = 0;
    std::uint32_t peer = 0, tag = 0, completion = 0;
    BufferRange range;
};
struct KeyedSend {
    std::uint64_t team = 0;
    std::uint32_t peer = 0, completion = 0;
    MessageKey key;
    BufferRange range;
};
struct KeyedRecv {
    std::uint64_t team = 0;
    std::uint32_t peer = 0, completion = 0;
    MessageKey key;
    BufferRange range;
};
// Takes back a KeyedRecv that no message has met.
struct KeyedCancel {
    std::uint64_t team = 0;
    std::uint32_t peer = 0;
    MessageKey key;
};
// Asks the device of `peer` to take in a message of ours that no receive has met.
struct KeyedStore {
    std::uint64_t team = 0;
    std::uint32_t peer = 0;
    MessageKey key;
};

// Windows: window_commands.h; kernels: kernel_commands.h.
using Command =
    std::variant<AddProxy, Ranks, CreateTeam, DestroyTeam, SchedulePart, ForgetSchedule, Start, BasicSend,
                 BasicRecv, KeyedSend, KeyedRecv, KeyedCancel, KeyedStore, CreateWindow, DestroyWindow,
                 AttachWindow, DetachWindow, WindowOperation, FlushWindow, Compute, UnloadKernel>;

// Bytes of the record, header included.
std::size_t record_bytes(const Command& command);
// Writes the record into room of record_bytes(command) bytes.
void encode_command(const Command& command, std::span<std::byte> room);
// `record` starts with its header. Status::protocol and a text for anything that encode_command would not
// have written.
Status decode_command(std::span<const std::byte> record, Command& command, std::string& problem);

// What a reader of records finds next. broken: nonsense, nothing can be read any more.
enum class NextRecord { none, record, broken };

// Most items of a part that fit into one record.
constexpr std::size_t max_part_bytes = max_record_bytes - 64;

}  // namespace offpath::control
