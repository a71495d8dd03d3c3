// The layout of atoms in memory: blocks of `lanes` atoms. A block has all x, then all y, then all z.
//
// A *slot* is a place for one atom. Slot s is lane s % lanes of block s / lanes. Forces are computed between
// a *cluster* of 4 slots and a block, so one load of the block serves 4 atoms (the cluster pairs of Pall and
// Hess, Comput. Phys. Commun. 184, 2013). Slots without an atom are fillers. They are so far away from atoms
// and from each other that they never interact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace minimd {

constexpr int cluster_size = 4;

struct Layout {
    int lanes = 8;  // 2, 4, 8 or 16

    // Numbers of slots are multiples of this, so that no two groups of slots share a cluster or a block.
    int granule() const { return lanes > cluster_size ? lanes : cluster_size; }
    std::int32_t padded(std::int32_t slots) const { return (slots + granule() - 1) / granule() * granule(); }
    std::size_t address(std::int32_t slot) const {  // of x; y is `lanes` further on, z twice as far
        return static_cast<std::size_t>(slot / lanes) * 3 * static_cast<std::size_t>(lanes) +
               static_cast<std::size_t>(slot % lanes);
    }
};

// Aligns to 128 bytes, so that blocks are loaded whole. New elements are not initialised.
template <typename T>
struct SlotAllocator {
    using value_type = T;
    SlotAllocator() = default;
    template <typename U>
    SlotAllocator(const SlotAllocator<U>&) {}
    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{128}));
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{128}); }
    template <typename U>
    void construct(U*) {}
    template <typename U, typename... Args>
    void construct(U* p, Args&&... args) {
        ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
    }
    bool operator==(const SlotAllocator&) const { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, SlotAllocator<T>>;

// The x of a filler is at most this. No atom has such an x.
constexpr double filler_edge = -1.0e5;
// The least distance between fillers. Lists must not reach this far.
constexpr double filler_spacing = 1.0e3;

// Returns the position of the filler in `slot`, in one dimension. It is far from every other slot's, and so
// close to the origin that single precision tells all 2^31 of them apart.
inline double filler_position(std::int32_t slot, int dim) {
    return filler_edge - filler_spacing * (slot >> (10 * dim) & (dim == 2 ? 2047 : 1023));
}

}  // namespace minimd
