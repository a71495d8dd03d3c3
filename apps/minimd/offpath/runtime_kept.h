// State that the kernels of libminimd-kernels.so share in the device's process. One kernel runs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/base/layout.h"
#include "minimd/kernels/kernels.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd::runtime {

// The lists that the host sent, for a device that does not share the host's memory.
struct KeptLists {
    std::vector<PairRow> rows;
    AlignedVector<std::int32_t> blocks;
};
KeptLists& kept_lists();

struct Buffers {
    void* const* data;
    const std::size_t* bytes;
    std::size_t count;

    template <typename T>
    T* at(std::size_t buffer) const {
        return static_cast<T*>(data[buffer]);
    }
    template <typename T>
    bool holds(std::size_t buffer, std::size_t numbers) const {
        return bytes[buffer] == numbers * sizeof(T);
    }
    template <typename T>
    std::span<const T> all(std::size_t buffer) const {
        return {static_cast<const T*>(data[buffer]), bytes[buffer] / sizeof(T)};
    }
};

// Returns the time in seconds.
double now();

bool has_kernels(const Numbers& numbers);

// Writes the answer to the first buffer.
void deliver(const Buffers& buffers, const EnergyVirial& sum, double begin);

}  // namespace minimd::runtime
