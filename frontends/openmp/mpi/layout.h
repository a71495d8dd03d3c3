// Where the bytes of a datatype's elements are: runs of bytes, in the order in which they are sent. Pure.
// Ownership: a layout is a value that does not change. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::region_mpi {

struct Layout {
    struct Run {
        std::ptrdiff_t at = 0;
        std::size_t bytes = 0;
    };
    // The most runs that one element may have.
    static constexpr std::size_t most_runs = std::size_t{1} << 20;

    std::vector<Run> runs;  // neighbours that touch are one
    std::ptrdiff_t lower = 0, upper = 0;
    std::size_t alignment = 1;  // of the largest predefined type in it; 0: the bounds were set explicitly

    static Layout of_bytes(std::size_t bytes, std::size_t alignment);

    std::size_t bytes() const;
    std::ptrdiff_t extent() const { return upper - lower; }
    // Whether an array of elements is exactly their bytes in order.
    bool is_plain() const;

    // Appends `count` elements of `of`, from `at` on. False: there would be too many runs.
    bool append(const Layout& of, std::ptrdiff_t at, std::size_t count);
    // Rounds the upper bound up, as a structure of C is.
    void align();

    // Copies `count` elements at `elements` to or from `packed`. unpack() stops after `bytes` packed bytes.
    void pack(const void* elements, std::size_t count, std::byte* packed) const;
    void unpack(const std::byte* packed, std::size_t bytes, void* elements) const;
};

}  // namespace offpath::region_mpi
