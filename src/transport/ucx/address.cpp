#include "transport/ucx/address.h"

#include "base/little_endian.h"
#include "transport/encrypted/encrypted.h"

#include <fmt/format.h>

#include <cstring>

namespace offpath::transport::ucx {
namespace {

constexpr char address_magic[4] = {'O', 'F', 'U', 'X'};
constexpr std::size_t checked_from = 4 + 2 + 2 + 4 + 4 + 8;
constexpr std::size_t envelope_bytes = checked_from + std::size_t{6} * 8;

std::uint64_t checksum(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (std::byte byte : bytes)
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ull;
    return hash;
}

}  // namespace

std::vector<std::byte> seal_address(const Address& address, std::uint16_t ucx_version) {
    std::vector<std::byte> inside;
    const Process& process = address.process;
    for (std::uint64_t field :
         {process.random, process.pid, process.start, process.boot, process.pid_space, process.ipc_space})
        append_little(inside, field, 8);
    inside.insert(inside.end(), address.worker.begin(), address.worker.end());
    inside.insert(inside.end(), address.local.begin(), address.local.end());
    std::vector<std::byte> bytes;
    bytes.reserve(checked_from + inside.size());
    for (char letter : address_magic)
        bytes.push_back(static_cast<std::byte>(letter));
    append_little(bytes, address_version, 2);
    append_little(bytes, ucx_version, 2);
    append_little(bytes, address.worker.size(), 4);
    append_little(bytes, address.local.size(), 4);
    append_little(bytes, checksum(inside), 8);
    bytes.insert(bytes.end(), inside.begin(), inside.end());
    return bytes;
}

Status open_address(std::span<const std::byte> bytes, Address& address, std::string& problem) {
    if (bytes.size() < envelope_bytes ||
        std::memcmp(bytes.data(), address_magic, sizeof address_magic) != 0) {
        problem = is_encrypted_address(bytes)
                      ? one_side_encrypts
                      : fmt::format("{} bytes that are no UCX transport's address", bytes.size());
        return Status::protocol;
    }
    const auto version = read_little(bytes, 4, 2);
    if (version != address_version) {
        problem = fmt::format("the address has version {}, this program knows version {}", version,
                              address_version);
        return Status::version;
    }
    const auto worker = read_little(bytes, 8, 4), local = read_little(bytes, 12, 4);
    if (envelope_bytes + worker + local != bytes.size()) {
        problem = fmt::format("the address announces {} bytes but has {}", envelope_bytes + worker + local,
                              bytes.size());
        return Status::protocol;
    }
    if (worker == 0 || read_little(bytes, 16, 8) != checksum(bytes.subspan(checked_from))) {
        problem = "the address is damaged: its checksum does not agree";
        return Status::protocol;
    }
    const auto field = [&](std::size_t i) { return read_little(bytes, checked_from + 8 * i, 8); };
    address.process = {field(0), field(1), field(2), field(3), field(4), field(5)};
    address.worker = bytes.subspan(envelope_bytes, worker);
    address.local = bytes.subspan(envelope_bytes + worker, local);
    return Status::ok;
}

}  // namespace offpath::transport::ucx
