// Copies where most are small: elements of the usual sizes are one load and one store, which nobody sees half
// of.
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
