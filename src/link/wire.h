// The messages between the two ends of a link: a fixed header and a payload, over a transport that may
// deliver them in any order. Little endian, fixed sizes, the same on every architecture. Pure; decoding
// trusts nothing.
//
// Header, 40 bytes:
//   0 u32 magic "OFLK"   4 u8 version   5 u8 kind   6 u16 zero   8 u64 token   16 u64 position
//   24 u32 id   28 u32 count   32 u32 bytes (of the payload)   36 i32 status
//
// kind         from    position              payload
// commands     client  number of the batch   command records (control/commands.h), contiguous
// completions  device  bytes of commands     count entries: u32 slot, u32 word, u32 source, u32 tag,
//                      taken, in total       u64 bytes; no entries: reports room for commands only
// fetch        device  0                     count entries: u64 address, u32 id, u32 bytes
// data         client  offset in the         the data of a fetch, one message for each part of part_bytes;
//                      fetch of this id      status not ok: no data, this part cannot be read
// store        device  address               a chunk for the client's memory, under an id
// stored       client  0                     count entries: u32 id, i32 status
// copy         device  0                     count entries: u64 from, u64 to, u32 id, u32 bytes: within the
//                                            client's memory; answered by stored
#pragma once

#include "base/field_lists.h"
#include "base/status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::link {

constexpr std::uint32_t wire_magic = 0x4b4c464f;
constexpr std::uint8_t wire_version = 1;
constexpr std::size_t header_bytes = 40;
// The payload that a transport copies at once; batches of entries and of short commands stay below it.
constexpr std::size_t batch_bytes = 8 << 10;
// Staged memory in one message; less than the transport pushes in one piece.
constexpr std::uint32_t part_bytes = 240 << 10;
constexpr std::uint32_t max_fetch_bytes = 8 * part_bytes;

enum class Kind : std::uint8_t { commands = 1, completions, fetch, data, store, stored, copy };

struct Header {
    Kind kind = Kind::commands;
    std::uint64_t token = 0;
    std::uint64_t position = 0;
    std::uint32_t id = 0;
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;
    Status status = Status::ok;
    // Those behind the kind, from offset 8 on.
    static void fields(auto& self, auto&& each) {
        each(self.token, self.position, self.id, self.count, self.bytes, self.status);
    }
    friend bool operator==(const Header&, const Header&) = default;
};

struct CompletionItem {
    std::uint32_t slot = 0, word = 0, source = 0, tag = 0;
    std::uint64_t bytes = 0;
    static constexpr void fields(auto& self, auto&& each) {
        each(self.slot, self.word, self.source, self.tag, self.bytes);
    }
    friend bool operator==(const CompletionItem&, const CompletionItem&) = default;
};
struct FetchItem {
    std::uint64_t address = 0;
    std::uint32_t id = 0, bytes = 0;
    static constexpr void fields(auto& self, auto&& each) { each(self.address, self.id, self.bytes); }
    friend bool operator==(const FetchItem&, const FetchItem&) = default;
};
struct StoredItem {
    std::uint32_t id = 0;
    Status status = Status::ok;
    static constexpr void fields(auto& self, auto&& each) { each(self.id, self.status); }
    friend bool operator==(const StoredItem&, const StoredItem&) = default;
};
struct CopyItem {
    std::uint64_t from = 0, to = 0;
    std::uint32_t id = 0, bytes = 0;
    static constexpr void fields(auto& self, auto&& each) { each(self.from, self.to, self.id, self.bytes); }
    friend bool operator==(const CopyItem&, const CopyItem&) = default;
};
template <typename Item>
constexpr std::size_t wire_bytes = body_bytes(Item{});
template <typename Item>
constexpr std::size_t max_items = batch_bytes / wire_bytes<Item>;

using HeaderBytes = std::array<std::byte, header_bytes>;
HeaderBytes encode_header(const Header& header);
// `payload`: how many bytes came with the header. False: not a message of a link, or one that an honest
// sender would not have made with encode_header.
bool decode_header(std::span<const std::byte> bytes, std::size_t payload, Header& header);

// `room` has wire_bytes<Item> bytes.
template <typename Item>
void encode_item(const Item& item, std::span<std::byte> room) {
    FieldWriter out(room);
    write_body(out, item);
}

// Decodes an item of a payload whose length decode_header has checked. An unknown status reads as
// Status::protocol.
template <typename Item>
Item decode_item(std::span<const std::byte> payload, std::size_t index) {
    FieldReader in(payload.subspan(index * wire_bytes<Item>));
    Item item;
    (void)read_body(in, item);
    return item;
}

}  // namespace offpath::link
