#include "link/wire.h"

#include "control/commands.h"

namespace offpath::link {
namespace {

template <typename Item>
bool holds(const Header& header) {
    return header.bytes == header.count * wire_bytes<Item> && header.count <= max_items<Item>;
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
    write_body(out, header);
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
    const char* const wrong = read_body(in, read);
    if (magic != wire_magic || version != wire_version || zero != 0 || wrong != nullptr) return false;
    if (read.bytes != payload || !sensible(read)) return false;
    header = read;
    return true;
}

}  // namespace offpath::link
