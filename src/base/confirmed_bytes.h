// Which payloads of collectives a receiver confirms. Where no rank forwards data, their senders know that
// they have arrived, so a rank that is done is not needed again after the loss of a device. Engine and front
// end must agree on the size.
#pragma once

#include <cstdint>

namespace offpath {

// From this size on. For smaller ones, confirming would cost a notable part of their time.
constexpr std::uint64_t confirmed_bytes = 64 << 10;

}  // namespace offpath
