#include "transport/encrypted/format.h"

#include "base/little_endian.h"
#include "transport/encrypted/encrypted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace offpath::transport::encrypted {
namespace {

constexpr char magic[4] = {'O', 'F', 'E', 'N'};
constexpr std::size_t fixed_bytes = 4 + 1 + 1 + 2 + sizeof(PublicKey) + sizeof(Admission);
constexpr std::size_t sender_at = 16, payload_tag_at = 48;

}  // namespace

void encode(const Clear& clear, std::span<std::byte> room) {
    write_little(room, 0, format_version, 1);
    write_little(room, 1, static_cast<std::uint64_t>(clear.kind), 1);
    write_little(room, 2, static_cast<std::uint64_t>(clear.cipher), 1);
    write_little(room, 3, 0, 1);
    write_little(room, 4, clear.nonce.stream, 4);
    write_little(room, 8, clear.nonce.number, 8);
    std::ranges::copy(clear.sender, room.begin() + sender_at);
    std::ranges::copy(clear.payload, room.begin() + payload_tag_at);
}

bool decode(std::span<const std::byte> bytes, Clear& clear) {
    if (bytes.size() < clear_bytes + tag_bytes || bytes.size() > Transport::max_wire_header) return false;
    const std::uint64_t kind = read_little(bytes, 1, 1), cipher = read_little(bytes, 2, 1);
    if (read_little(bytes, 0, 1) != format_version || read_little(bytes, 3, 1) != 0) return false;
    if (kind < static_cast<std::uint64_t>(Kind::message) || kind > static_cast<std::uint64_t>(Kind::answer))
        return false;
    clear.kind = static_cast<Kind>(kind);
    clear.cipher = static_cast<Cipher>(cipher);
    clear.nonce = {static_cast<std::uint32_t>(read_little(bytes, 4, 4)), read_little(bytes, 8, 8)};
    std::copy_n(bytes.begin() + sender_at, clear.sender.size(), clear.sender.begin());
    std::copy_n(bytes.begin() + payload_tag_at, clear.payload.size(), clear.payload.begin());
    return true;
}

std::array<std::byte, clear_bytes + 8> covered_by_tag(std::span<const std::byte> clear,
                                                      std::size_t payload_bytes) {
    std::array<std::byte, clear_bytes + 8> covered;
    std::copy_n(clear.begin(), clear_bytes, covered.begin());
    write_little(covered, clear_bytes, payload_bytes, 8);
    return covered;
}

bool is_address(std::span<const std::byte> bytes) {
    return bytes.size() >= sizeof magic && std::memcmp(bytes.data(), magic, sizeof magic) == 0;
}

std::vector<std::byte> encode(const Address& address) {
    std::vector<std::byte> bytes;
    bytes.reserve(fixed_bytes + address.below.size() + tag_bytes);
    for (char letter : magic)
        bytes.push_back(static_cast<std::byte>(letter));
    append_little(bytes, format_version, 1);
    append_little(bytes, address.ciphers, 1);
    append_little(bytes, 0, 2);
    bytes.insert(bytes.end(), address.key.begin(), address.key.end());
    bytes.insert(bytes.end(), address.admission.begin(), address.admission.end());
    bytes.insert(bytes.end(), address.below.begin(), address.below.end());
    const Tag digest = digest_of(bytes);
    bytes.insert(bytes.end(), digest.begin(), digest.end());
    return bytes;
}

Status decode(std::span<const std::byte> bytes, Address& address, std::string& problem) {
    if (!is_address(bytes)) {
        problem = one_side_encrypts;
        return Status::protocol;
    }
    if (bytes.size() > 4 && read_little(bytes, 4, 1) != format_version) {
        problem = fmt::format("the peer encrypts by version {}, this side by version {}",
                              read_little(bytes, 4, 1), format_version);
        return Status::version;
    }
    const bool whole = bytes.size() > fixed_bytes + tag_bytes;
    const Tag digest = whole ? digest_of(bytes.first(bytes.size() - tag_bytes)) : Tag{};
    if (!whole || !std::ranges::equal(digest, bytes.last(tag_bytes))) {
        problem = fmt::format("a damaged address of an encrypting transport, {} bytes", bytes.size());
        return Status::protocol;
    }
    address.ciphers = static_cast<std::uint8_t>(read_little(bytes, 5, 1));
    std::copy_n(bytes.begin() + 8, address.key.size(), address.key.begin());
    std::copy_n(bytes.begin() + 8 + sizeof(PublicKey), address.admission.size(), address.admission.begin());
    address.below = bytes.subspan(fixed_bytes, bytes.size() - fixed_bytes - tag_bytes);
    return Status::ok;
}

}  // namespace offpath::transport::encrypted
