// How a reduction combines two vectors, by type and operation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::shmem {

enum class Reduction : std::uint8_t { and_, or_, xor_, max, min, sum, prod };

struct Reducer {
    std::size_t element = 0;
    // into[i] = into[i] (operation) from[i]; no overlap.
    void (*combine)(void* into, const void* from, std::size_t count) = nullptr;
};

// Defined for the types of shmem.h: integers, floating point, and C's complex types for sum and prod.
template <class T>
const Reducer& reducer(Reduction operation);

}  // namespace offpath::shmem
