#include "transport/ucx/window_key.h"

#include "base/little_endian.h"

#include <ucp/api/ucp.h>

#include <cstring>

namespace offpath::transport::ucx {
namespace {

constexpr char key_magic[4] = {'O', 'F', 'W', 'K'};
constexpr std::uint16_t key_version = 1;
constexpr std::size_t head_bytes = 4 + 2 + 2 + 4 + 4 + 8 + 8;

}  // namespace

std::uint16_t loaded_version() {
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    return static_cast<std::uint16_t>(major << 8 | minor);
}

std::vector<std::byte> seal_window_key(const WindowKey& key, std::uint16_t ucx_version) {
    std::vector<std::byte> bytes;
    bytes.reserve(head_bytes + key.worker.size() + key.rkey.size());
    for (char letter : key_magic)
        bytes.push_back(static_cast<std::byte>(letter));
    append_little(bytes, key_version, 2);
    append_little(bytes, ucx_version, 2);
    append_little(bytes, key.worker.size(), 4);
    append_little(bytes, key.rkey.size(), 4);
    append_little(bytes, key.address, 8);
    append_little(bytes, key.bytes, 8);
    bytes.insert(bytes.end(), key.worker.begin(), key.worker.end());
    bytes.insert(bytes.end(), key.rkey.begin(), key.rkey.end());
    return bytes;
}

Status open_window_key(std::span<const std::byte> sealed, std::uint16_t ucx_version, WindowKey& key) {
    if (sealed.size() < head_bytes || std::memcmp(sealed.data(), key_magic, sizeof key_magic) != 0)
        return Status::protocol;
    if (read_little(sealed, 4, 2) != key_version || read_little(sealed, 6, 2) != ucx_version)
        return Status::version;
    const auto worker = read_little(sealed, 8, 4), rkey = read_little(sealed, 12, 4);
    const auto address = read_little(sealed, 16, 8), bytes = read_little(sealed, 24, 8);
    if (worker == 0 || rkey == 0 || head_bytes + worker + rkey != sealed.size()) return Status::protocol;
    if (address == 0 || bytes == 0 || address + bytes < address) return Status::protocol;
    key.worker = sealed.subspan(head_bytes, worker);
    key.rkey = sealed.subspan(head_bytes + worker, rkey);
    key.address = address;
    key.bytes = bytes;
    return Status::ok;
}

}  // namespace offpath::transport::ucx
