// The key that a UCX process hands out for a window of its memory. Pure. Decoding trusts nothing, but UCX
// will trust the contents.
//   magic "OFWK", version u16, UCX's version u16 (major << 8 | minor), length of the worker address u32,
//   length of the remote key u32, address u64, bytes u64, worker address, remote key. Little endian.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::transport::ucx {

struct WindowKey {
    std::span<const std::byte> worker, rkey;
    std::uint64_t address = 0, bytes = 0;
};

// The version of the UCX that this process has loaded.
std::uint16_t loaded_version();

std::vector<std::byte> seal_window_key(const WindowKey& key, std::uint16_t ucx_version);

// Returns views into `sealed`. protocol: not a key. version: another format, or another UCX version, whose
// remote keys may differ in form.
Status open_window_key(std::span<const std::byte> sealed, std::uint16_t ucx_version, WindowKey& key);

}  // namespace offpath::transport::ucx
