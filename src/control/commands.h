// Commands: the records that a client puts into its command ring. Every record is
//   u32 bytes (of the whole record), u16 kind, u16 zero, body
// in the byte order of the machine, which both sides share. Data that may exceed a record (ranks, teams,
// schedules, buffer lists) comes in parts, in order; the last part completes it. Encoding writes straight
// into the ring. Decoding reads a private copy, checks everything and does not allocate: spans in a Command
// point into the record. Pure.
#pragma once

#include "base/field_lists.h"
#include "base/message_key.h"
#include "base/status.h"
#include "control/command_fields.h"
#include "control/kernel_commands.h"
#include "control/limits.h"
#include "control/window_commands.h"

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace offpath::control {

// A proxy of the job and its transport address.
struct AddProxy {
    static constexpr std::uint16_t kind = 1;
    std::uint64_t proxy = 0;
    std::span<const std::byte> address;
    static void fields(auto& self, auto&& each) {
        each(self.proxy);
        each.list(self.address, max_address_bytes);
    }
    const char* problem() const {
        return proxy == 0 || address.empty() ? "a proxy without id or address" : nullptr;
    }
};
// Proxies of the job ranks first, first + 1, ...
struct Ranks {
    static constexpr std::uint16_t kind = 2;
    std::uint32_t first = 0;
    Packed<std::uint64_t> proxies;
    static void fields(auto& self, auto&& each) {
        each(self.first);
        each.list(self.proxies, max_record_bytes);
    }
    const char* problem() const {
        return part_fits(first, proxies.size(), max_job_size) ? nullptr : "a table of ranks that is too long";
    }
};
// The job ranks of the team from place `first` on. Complete when first + ranks.size() == size.
struct CreateTeam {
    static constexpr std::uint16_t kind = 3;
    std::uint64_t team = 0;
    std::uint32_t rank = 0, size = 0, first = 0;
    Packed<std::uint32_t> ranks;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.rank, self.size, self.first);
        each.list(self.ranks, max_record_bytes);
    }
    const char* problem() const {
        const bool fits = size > 0 && size <= max_job_size && rank < size && ranks.size() > 0 &&
                          part_fits(first, ranks.size(), size);
        return fits ? nullptr : "a team whose size, rank or list is out of range";
    }
};
struct DestroyTeam {
    static constexpr std::uint16_t kind = 4;
    std::uint64_t team = 0;
    static void fields(auto& self, auto&& each) { each(self.team); }
};
// A part of an encoded schedule of `total` bytes, starting at `offset`.
struct SchedulePart {
    static constexpr std::uint16_t kind = 5;
    std::uint64_t schedule = 0, total = 0, offset = 0;
    std::span<const std::byte> bytes;
    static void fields(auto& self, auto&& each) {
        each(self.schedule, self.total, self.offset);
        each.list(self.bytes, max_record_bytes);
    }
    const char* problem() const {
        const bool fits =
            total <= max_schedule_bytes && !bytes.empty() && part_fits(offset, bytes.size(), total);
        return fits ? nullptr : "a schedule part outside its schedule";
    }
};
struct ForgetSchedule {
    static constexpr std::uint16_t kind = 6;
    std::uint64_t schedule = 0;
    static void fields(auto& self, auto&& each) { each(self.schedule); }
};
// One start of a schedule on a team. `sequence` numbers the team's starts alike on every rank. Complete when
// first + ranges.size() == buffers.
struct Start {
    static constexpr std::uint16_t kind = 7;
    std::uint64_t schedule = 0, team = 0;
    std::uint32_t sequence = 0, completion = 0, buffers = 0, first = 0;
    Packed<BufferRange> ranges;
    static void fields(auto& self, auto&& each) {
        each(self.schedule, self.team, self.sequence, self.completion, self.buffers, self.first);
        each.list(self.ranges, max_record_bytes);
    }
    const char* problem() const {
        const bool fits = buffers <= max_buffers && part_fits(first, ranges.size(), buffers) &&
                          (ranges.size() > 0 || buffers == 0);
        return fits ? nullptr : "a start with a wrong list of buffers";
    }
};
struct BasicSend {
    static constexpr std::uint16_t kind = 8;
    std::uint64_t team = 0;
    std::uint32_t peer = 0, tag = 0, completion = 0;
    BufferRange range;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.peer, self.tag, self.completion, self.range);
    }
};
// Receives from any rank that agrees with `peer` in the bits of `mask`.
struct BasicRecv {
    static constexpr std::uint16_t kind = 9;
    std::uint64_t team = 0;
    std::uint32_t peer = 0, tag = 0, completion = 0, mask = UINT32_MAX;
    BufferRange range;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.peer, self.tag, self.completion, self.mask, self.range);
    }
};
// Finds the message that such a receive would take. `waits`: until there is one.
struct BasicProbe {
    static constexpr std::uint16_t kind = 22;
    std::uint64_t team = 0;
    std::uint32_t peer = 0, tag = 0, completion = 0, mask = UINT32_MAX, waits = 0;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.peer, self.tag, self.completion, self.mask, self.waits);
    }
};
struct KeyedSend {
    static constexpr std::uint16_t kind = 10;
    std::uint64_t team = 0;
    std::uint32_t peer = 0, completion = 0;
    MessageKey key;
    BufferRange range;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.peer, self.completion, self.key, self.range);
    }
};
struct KeyedRecv {
    static constexpr std::uint16_t kind = 11;
    std::uint64_t team = 0;
    std::uint32_t peer = 0, completion = 0;
    MessageKey key;
    BufferRange range;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.peer, self.completion, self.key, self.range);
    }
};
// Cancels a KeyedRecv that no message has met.
struct KeyedCancel {
    static constexpr std::uint16_t kind = 12;
    std::uint64_t team = 0;
    std::uint32_t peer = 0;
    MessageKey key;
    static void fields(auto& self, auto&& each) { each(self.team, self.peer, self.key); }
};
// Asks the device of `peer` to store a message of ours that no receive has met.
struct KeyedStore {
    static constexpr std::uint16_t kind = 13;
    std::uint64_t team = 0;
    std::uint32_t peer = 0;
    MessageKey key;
    static void fields(auto& self, auto&& each) { each(self.team, self.peer, self.key); }
};

// Pages of ordinary memory that no longer lie in the client's memory file (messages.h, SharePages).
struct ForgetPages {
    static constexpr std::uint16_t kind = 14;
    std::uint64_t address = 0, bytes = 0;
    static void fields(auto& self, auto&& each) { each(self.address, self.bytes); }
};

// window_commands.h has the commands for windows, kernel_commands.h those for kernels.
using Command = std::variant<AddProxy, Ranks, CreateTeam, DestroyTeam, SchedulePart, ForgetSchedule, Start,
                             BasicSend, BasicRecv, KeyedSend, KeyedRecv, KeyedCancel, KeyedStore, BasicProbe,
                             CreateWindow, DestroyWindow, AttachWindow, DetachWindow, WindowOperation,
                             FlushWindow, KeepLedger, Compute, UnloadKernel, ForgetPages>;

// The size of the record, header included.
std::size_t record_bytes(const Command& command);
// Writes the record into a buffer of record_bytes(command) bytes.
void encode_command(const Command& command, std::span<std::byte> room);
// `record` starts with its header. Returns protocol, with `problem`, for anything that encode_command would
// not have written.
Status decode_command(std::span<const std::byte> record, Command& command, std::string& problem);

// What a reader of records finds next. broken: invalid data; nothing can be read any more.
enum class NextRecord { none, record, broken };

// The most bytes of items of a part that fit into one record.
constexpr std::size_t max_part_bytes = max_record_bytes - 64;

}  // namespace offpath::control
