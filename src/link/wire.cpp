#include "link/wire.h"

#include "base/field_codec.h"
#include "control/commands.h"

namespace offpath::link {
namespace {

template <typename Item>
bool holds(const Header& header) {
    return header.bytes == header.count * Item::wire_bytes && header.count <= max_items<Item>;
}

bool sensible(const Header& header) {
    const bool ok = header.status == Status::ok;
    switch (header.kind) {
        case Kind::commands:
            return ok && header.id == 0 && header.count == 0 &&
                   header.bytes >= control::record_header_bytes && header.bytes <= control::max_record_bytes;
        case Kind::completions:
            return ok && header.id == 0 && holds<CompletionItem>(header);
        case Kind::fetch:
            return ok && header.id == 0 && header.position == 0 && header.count > 0 &&
                   holds<FetchItem>(header);
        case Kind::data:
            return header.count == 0 && header.position < max_fetch_bytes &&
                   (ok ? header.bytes > 0 && header.bytes <= part_bytes : header.bytes == 0);
        case Kind::store:
            return ok && header.count == 0 && header.bytes > 0 && header.bytes <= part_bytes;
        case Kind::stored:
            return ok && header.id == 0 && header.position == 0 && header.count > 0 &&
                   holds<StoredItem>(header);
        case Kind::copy:
            return ok && header.id == 0 && header.position == 0 && header.count > 0 &&
                   holds<CopyItem>(header);
    }
    return false;
}

}  // namespace

HeaderBytes encode_header(const Header& header) {
    HeaderBytes bytes;
    FieldWriter out(bytes);
    out.value(wire_magic);
    out.value(wire_version);
    out.value(static_cast<std::uint8_t>(header.kind));
    out.value(std::uint16_t{0});
    out.value(header.token);
    out.value(header.position);
    out.value(header.id);
    out.value(header.count);
    out.value(header.bytes);
    out.value(static_cast<std::int32_t>(header.status));
    return bytes;
}

bool decode_header(std::span<const std::byte> bytes, std::size_t payload, Header& header) {
    if (bytes.size() != header_bytes) return false;
    FieldReader in(bytes);
    const auto magic = in.value<std::uint32_t>();
    const auto version = in.value<std::uint8_t>();
    const auto kind = in.value<std::uint8_t>();
    const auto zero = in.value<std::uint16_t>();
    Header read;
    read.kind = static_cast<Kind>(kind);
    read.token = in.value<std::uint64_t>();
    read.position = in.value<std::uint64_t>();
    read.id = in.value<std::uint32_t>();
    read.count = in.value<std::uint32_t>();
    read.bytes = in.value<std::uint32_t>();
    const auto status = in.value<std::int32_t>();
    if (magic != wire_magic || version != wire_version || zero != 0 || !status_of(status, read.status))
        return false;
    if (read.bytes != payload || !sensible(read)) return false;
    header = read;
    return true;
}

void encode_item(const CompletionItem& item, std::span<std::byte> room) {
    FieldWriter out(room);
    out.value(item.slot);
    out.value(item.word);
    out.value(item.source);
    out.value(item.tag);
    out.value(item.bytes);
}

void encode_item(const FetchItem& item, std::span<std::byte> room) {
    FieldWriter out(room);
    out.value(item.address);
    out.value(item.id);
    out.value(item.bytes);
}

void encode_item(const StoredItem& item, std::span<std::byte> room) {
    FieldWriter out(room);
    out.value(item.id);
    out.value(static_cast<std::int32_t>(item.status));
}

void encode_item(const CopyItem& item, std::span<std::byte> room) {
    FieldWriter out(room);
    out.value(item.from);
    out.value(item.to);
    out.value(item.id);
    out.value(item.bytes);
}

template <>
CompletionItem decode_item(std::span<const std::byte> payload, std::size_t index) {
    FieldReader in(payload.subspan(index * CompletionItem::wire_bytes));
    CompletionItem item;
    item.slot = in.value<std::uint32_t>();
    item.word = in.value<std::uint32_t>();
    item.source = in.value<std::uint32_t>();
    item.tag = in.value<std::uint32_t>();
    item.bytes = in.value<std::uint64_t>();
    return item;
}

template <>
FetchItem decode_item(std::span<const std::byte> payload, std::size_t index) {
    FieldReader in(payload.subspan(index * FetchItem::wire_bytes));
    FetchItem item;
    item.address = in.value<std::uint64_t>();
    item.id = in.value<std::uint32_t>();
    item.bytes = in.value<std::uint32_t>();
    return item;
}

template <>
StoredItem decode_item(std::span<const std::byte> payload, std::size_t index) {
    FieldReader in(payload.subspan(index * StoredItem::wire_bytes));
    StoredItem item;
    item.id = in.value<std::uint32_t>();
    const auto status = in.value<std::int32_t>();
    if (!status_of(status, item.status)) item.status = Status::protocol;
    return item;
}

template <>
CopyItem decode_item(std::span<const std::byte> payload, std::size_t index) {
    FieldReader in(payload.subspan(index * CopyItem::wire_bytes));
    CopyItem item;
    item.from = in.value<std::uint64_t>();
    item.to = in.value<std::uint64_t>();
    item.id = in.value<std::uint32_t>();
    item.bytes = in.value<std::uint32_t>();
    return item;
}

}  // namespace offpath::link
