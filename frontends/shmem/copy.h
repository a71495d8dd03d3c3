// Copies for small elements. An element of 1, 2, 4 or 8 bytes is copied by one load and one store, so no
// other
// PE sees half of it.
#pragma once

#include <cstddef>
#include <cstring>

namespace offpath::shmem {

inline void copy(void* to, const void* from, std::size_t bytes) {
    switch (bytes) {
        case 1:
            std::memcpy(to, from, 1);
            return;
        case 2:
            std::memcpy(to, from, 2);
            return;
        case 4:
            std::memcpy(to, from, 4);
            return;
        case 8:
            std::memcpy(to, from, 8);
            return;
        default:
            std::memcpy(to, from, bytes);
    }
}

}  // namespace offpath::shmem
