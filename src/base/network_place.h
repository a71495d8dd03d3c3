// NetworkPlace: memory that only the network card reaches, since its bytes are another system's: what back
// end `xgvmi` imports. No instruction of this process may touch it. A transport that knows the registration
// moves it by its handle.
#pragma once

#include <cstdint>

namespace offpath {

struct NetworkPlace {
    const void* registration = nullptr;  // the transport's own record; null: there is no such place
    std::uint64_t address = 0;           // the owner's

    explicit operator bool() const { return registration != nullptr; }
    NetworkPlace at(std::uint64_t more) const { return {registration, address + more}; }
};

}  // namespace offpath
