#include "halo/stencil.h"

#include <algorithm>

namespace halo {

namespace {

struct Box {
    std::int64_t lo[3], hi[3];  // [lo, hi) in padded indices
};

Box cells_of(const Layout& layout) {
    Box box{};
    for (int dim = 0; dim < 3; ++dim) {
        box.lo[dim] = layout.halo[dim];
        box.hi[dim] = layout.halo[dim] + layout.n[dim];
    }
    return box;
}

bool empty(const Box& box) {
    return box.lo[0] >= box.hi[0] || box.lo[1] >= box.hi[1] || box.lo[2] >= box.hi[2];
}

template <int dims>
void relax(const Layout& layout, const Box& box, const double* __restrict from, double* __restrict to) {
    constexpr double weight = 0.5 / (2 * dims);
    const std::int64_t slow = layout.stride[0], middle = layout.stride[1];
    for (std::int64_t i = box.lo[0]; i < box.hi[0]; ++i) {
        for (std::int64_t j = box.lo[1]; j < box.hi[1]; ++j) {
            const std::int64_t row = i * slow + j * middle;
            for (std::int64_t k = row + box.lo[2]; k < row + box.hi[2]; ++k) {
                double sum = from[k - 1] + from[k + 1];
                if constexpr (dims > 1) sum += from[k - middle] + from[k + middle];
                if constexpr (dims > 2) sum += from[k - slow] + from[k + slow];
                to[k] = 0.5 * from[k] + weight * sum;
            }
        }
    }
}

void relax(const Layout& layout, const Box& box, const double* from, double* to) {
    if (layout.dims == 1)
        relax<1>(layout, box, from, to);
    else if (layout.dims == 2)
        relax<2>(layout, box, from, to);
    else
        relax<3>(layout, box, from, to);
}

// Calls visit(slab) for each layer of cells at a side that has a neighbour. Each cell is in only one slab.
// Returns the remaining cells.
template <typename Visit>
Box peel(const Layout& layout, Visit&& visit) {
    Box rest = cells_of(layout);
    for (int dim = 0; dim < 3; ++dim) {
        for (int side = 0; side < 2; ++side) {
            if (!layout.has(dim, side) || empty(rest)) continue;
            Box slab = rest;
            if (side == 0)
                slab.hi[dim] = ++rest.lo[dim];
            else
                slab.lo[dim] = --rest.hi[dim];
            visit(slab);
        }
    }
    return rest;
}

// Calls visit(row in the field, row in the buffer, numbers) for each row of the layers at all sides that have
// a neighbour.
template <typename Visit>
void for_rows(const Layout& layout, Layer which, Visit&& visit) {
    const auto depth = static_cast<std::int64_t>(which);
    for (int dim = 0; dim < 3; ++dim) {
        for (int side = 0; side < 2; ++side) {
            if (!layout.has(dim, side) || depth >= layout.n[dim]) continue;
            Box box = cells_of(layout);
            const std::int64_t layer =
                side == 0 ? layout.halo[dim] + depth : layout.halo[dim] + layout.n[dim] - 1 - depth;
            box.lo[dim] = layer;
            box.hi[dim] = layer + 1;
            std::size_t at = layout.face_begin(dim, side);
            const auto length = static_cast<std::size_t>(box.hi[2] - box.lo[2]);
            for (std::int64_t i = box.lo[0]; i < box.hi[0]; ++i) {
                for (std::int64_t j = box.lo[1]; j < box.hi[1]; ++j, at += length)
                    visit(i * layout.stride[0] + j * layout.stride[1] + box.lo[2], at, length);
            }
        }
    }
}

}  // namespace

std::size_t Layout::face_begin(int dim, int side) const {
    constexpr std::size_t line = 8;  // numbers in a cache line
    std::size_t at = 0;
    for (int before = 0; before < 2 * dim + side; ++before)
        if (halo[before / 2] != 0) at += (face(before / 2) + line - 1) / line * line;
    return at;
}

void step_boundary(const Layout& layout, const double* from, double* to) {
    peel(layout, [&](const Box& slab) { relax(layout, slab, from, to); });
}

void step_interior(const Layout& layout, const double* from, double* to) {
    const Box rest = peel(layout, [](const Box&) {});
    if (!empty(rest)) relax(layout, rest, from, to);
}

void pack(const Layout& layout, Layer layer, const double* field, double* faces) {
    for_rows(layout, layer, [&](std::int64_t cell, std::size_t at, std::size_t length) {
        std::copy_n(field + cell, length, faces + at);
    });
}

void unpack(const Layout& layout, Layer layer, const double* faces, double* field) {
    for_rows(layout, layer, [&](std::int64_t cell, std::size_t at, std::size_t length) {
        std::copy_n(faces + at, length, field + cell);
    });
}

}  // namespace halo
