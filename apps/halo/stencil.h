// The kernel that all variants run: one step of a stencil on a block with a halo of one cell, and the copies
// between the block's faces and buffers. It does not use MPI and allocates nothing, so a device can run it.
//
// A new value is half the old one plus half the mean of the 2, 4 or 6 neighbours. The order of the additions
// is fixed and nothing is contracted, so every way to cut the domain gives the same bits. Any number of
// threads may call the functions on different memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halo {

// The shape of a block in memory. It is a plain value, because it is also the argument of the device's
// kernels.
struct Layout {
    std::int32_t dims = 1;
    std::uint32_t sides = 0;  // bit 2 * dim + side: there is a neighbour
    std::int64_t n[3] = {1, 1, 1};
    std::int64_t halo[3] = {};    // 1, or 0 for unused dimensions
    std::int64_t stride[3] = {};  // in numbers

    bool has(int dim, int side) const { return (sides >> (2 * dim + side) & 1) != 0; }
    std::int64_t padded(int dim) const { return n[dim] + 2 * halo[dim]; }
    std::size_t numbers() const { return static_cast<std::size_t>(padded(0) * padded(1) * padded(2)); }
    // The numbers in a face, and the index at which it begins in the buffer of all faces. That buffer has
    // face_numbers() numbers.
    std::size_t face(int dim) const { return static_cast<std::size_t>(n[0] * n[1] * n[2] / n[dim]); }
    std::size_t face_begin(int dim, int side) const;
    std::size_t face_numbers() const { return face_begin(3, 0); }
};

// Compute the cells that neighbours need, and the rest.
void step_boundary(const Layout& layout, const double* from, double* to);
void step_interior(const Layout& layout, const double* from, double* to);
// Three layers along each side that has a neighbour: the halo, the block's outermost cells, and the cells
// next to those.
enum class Layer : int { halo = -1, face = 0, inner = 1 };
// Copy one layer of all sides between a field and a buffer of all faces. A block of one cell has no inner
// layer.
void pack(const Layout& layout, Layer layer, const double* field, double* faces);
void unpack(const Layout& layout, Layer layer, const double* faces, double* field);

}  // namespace halo
