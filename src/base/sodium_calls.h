// What each use of libsodium needs: its start, and bytes in the form of its functions. Includes libsodium's
// header. Threads: any.
#pragma once

#include <sodium.h>

#include <cstddef>
#include <span>
#include <stdexcept>

namespace offpath::sodium {

// Comes before the first other call; later ones cost a comparison. libsodium then chooses the code for this
// processor. Throws std::runtime_error if there is no source of random numbers.
inline void start() {
    static const int ready = sodium_init();
    if (ready < 0) throw std::runtime_error("libsodium cannot be initialised: no source of random numbers");
}

inline const unsigned char* in(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* out(std::span<std::byte> bytes) {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace offpath::sodium
