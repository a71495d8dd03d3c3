// The memory of a team's slot at one PE.
//
// First come words, each written by one PE at a time, all only growing while the team lives:
//   arrived[n]   of the group's members, at its leader: how many syncs they have come to
//   met[64]      of the other groups' leaders, at a leader, by rounds
//   released     by the leader: how many syncs are done
// then, for each of `cell_count` operations in a row, a cell:
//   ready        by the owner: the operation whose data (for the group to read) are in the cell
//   done         by the owner: likewise, what it got from elsewhere
//   from[n]      by each member: the operation of which its message is here
// and at the end the data areas of the cells, which also serve as one area to operations that use no cell.
//
// An operation's number is its place in the team's sequence of operations. Cell number % cell_count is used
// again only after a sync of all members, so whoever is behind finds its data. n is the number of all PEs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::shmem {

inline constexpr int cell_count = 8;
inline constexpr std::size_t cell_bytes = 16 << 10;
inline constexpr int round_count = 64;
inline constexpr std::size_t line = 64;

struct SlotLayout {
    std::size_t pes = 0;

    static constexpr std::size_t lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }
    std::size_t row() const { return lines(pes * sizeof(std::uint64_t)); }
    std::size_t met() const { return row(); }
    std::size_t released() const { return met() + round_count * sizeof(std::uint64_t); }
    std::size_t cells() const { return released() + line; }
    std::size_t cell() const { return 2 * line + row(); }
    std::size_t data() const { return cells() + cell_count * cell(); }
    std::size_t bytes() const { return data() + cell_count * cell_bytes; }
    // What has to be zero while nobody uses the slot.
    std::size_t words_bytes() const { return data(); }
};
extern SlotLayout slot_layout;

// A slot's memory, at this PE or, mapped, at one of the node.
struct Slot {
    std::byte* base = nullptr;

    std::uint64_t* word(std::size_t offset) const { return reinterpret_cast<std::uint64_t*>(base + offset); }
    std::uint64_t* arrived(int place) const { return word(0) + place; }
    std::uint64_t* met(int round) const { return word(slot_layout.met()) + round; }
    std::uint64_t* released() const { return word(slot_layout.released()); }
    std::uint64_t* ready(std::size_t cell) const {
        return word(slot_layout.cells() + cell * slot_layout.cell());
    }
    std::uint64_t* done(std::size_t cell) const { return ready(cell) + line / sizeof(std::uint64_t); }
    std::uint64_t* from(std::size_t cell, int rank) const {
        return ready(cell) + 2 * line / sizeof(std::uint64_t) + rank;
    }
    std::byte* data(std::size_t cell) const { return base + slot_layout.data() + cell * cell_bytes; }
    // The data areas as one.
    std::byte* scratch() const { return data(0); }
    static constexpr std::size_t scratch_bytes = cell_count * cell_bytes;
};

}  // namespace offpath::shmem
