// The memory of a team's slot at one PE.
//
// First come words. Each is written by one PE at a time, and only grows while the team lives:
//   arrived[n]   of the group's members, at their leader: the syncs that they have entered
//   met[64]      of the other groups' leaders, at a leader, by rounds
//   released     by the leader: the syncs that are done
// Then, for each of `cell_count` consecutive operations, a cell:
//   ready        by the owner: the operation whose data the cell has, for the group to read
//   done         by the owner: the same for data that it received
//   from[n]      by each member: the operation whose message from it is here
// The data areas of the cells are at the end. An operation that uses no cell may use all of them as one area.
//
// An operation's number is its place in the team's sequence of operations. The cell with index number %
// cell_count is reused only after a sync of all members, so a slow member still finds its data. n is the
// number of all PEs.
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
    // The bytes that must be zero while the slot is not in use.
    std::size_t words_bytes() const { return data(); }
};
extern SlotLayout slot_layout;

// The memory of a slot, at this PE or, mapped, at another PE of the node.
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
    // All data areas as one area.
    std::byte* scratch() const { return data(0); }
    static constexpr std::size_t scratch_bytes = cell_count * cell_bytes;
};

}  // namespace offpath::shmem
