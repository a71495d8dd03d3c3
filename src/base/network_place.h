// NetworkPlace: memory that only the network card reaches, since its bytes are another system's: what back
// end `xgvmi` imports. No instruction of this process may touch it. A transport that knows the registration
// moves it by its handle.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath {

// UCX may touch payloads of a few bytes although it has their handle, so smaller ones are staged. In the
// simulator, an alltoall of 16 KiB on thor-bf2 is 20 % shorter by the network card than staged
// (docs/reproduction.md).
constexpr std::size_t least_network_bytes = 8 << 10;

struct NetworkPlace {
    const void* registration = nullptr;  // the transport's own record; null: there is no such place
    std::uint64_t address = 0;           // the owner's

    explicit operator bool() const { return registration != nullptr; }
    NetworkPlace at(std::uint64_t more) const { return {registration, address + more}; }
};

}  // namespace offpath
