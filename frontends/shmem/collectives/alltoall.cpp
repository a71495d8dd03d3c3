// alltoall and alltoalls, by pairwise exchange.
//
// Small: each member puts its row into its cell, and members of a node read each other's cells. Between
// nodes, one message for each pair. Large: every member puts its blocks directly into their destinations.

#include <cstring>

#include "collectives/collectives.h"
#include "collectives/steps.h"

namespace offpath::shmem {

namespace {

// The elements of a block; they are contiguous or `stride` apart.
struct Blocks {
    std::size_t element, count;
    std::ptrdiff_t dest_stride, source_stride;

    std::size_t bytes() const { return element * count; }
    std::size_t dest_offset(int rank) const { return offset(rank, dest_stride); }
    std::size_t source_offset(int rank) const { return offset(rank, source_stride); }
    // The bytes from the first element of the first block to the last element of the last block.
    std::size_t extent(std::ptrdiff_t stride, int members) const {
        return offset(members, stride) - static_cast<std::size_t>(stride - 1) * element;
    }
    bool plain() const { return dest_stride == 1 && source_stride == 1; }

  private:
    std::size_t offset(int rank, std::ptrdiff_t stride) const {
        return static_cast<std::size_t>(rank) * static_cast<std::size_t>(stride) * bytes();
    }
};

void copy_strided(std::byte* to, std::ptrdiff_t to_stride, const std::byte* from, std::ptrdiff_t from_stride,
                  const Blocks& blocks) {
    if (to_stride == 1 && from_stride == 1) {
        std::memcpy(to, from, blocks.bytes());
        return;
    }
    const auto step = static_cast<std::ptrdiff_t>(blocks.element);
    for (std::size_t i = 0; i < blocks.count; ++i) {
        std::memcpy(to, from, blocks.element);
        to += to_stride * step;
        from += from_stride * step;
    }
}

// The first half of a cell is the member's row; the second half receives data from other nodes.
void alltoall_small(Team& team, std::byte* dest, const std::byte* source, const Blocks& blocks) {
    const Cell cell = next_cell(team);
    const std::size_t bytes = blocks.bytes();
    std::byte* row = team.own.data(cell.index);
    std::byte* incoming = row + cell_bytes / 2;
    const auto nth = [&](int rank) { return static_cast<std::size_t>(rank) * bytes; };
    for (int rank = 0; rank < team.size; ++rank)
        copy_strided(row + nth(rank), 1, source + blocks.source_offset(rank), blocks.source_stride, blocks);
    publish(team.own.ready(cell.index), cell.number);
    for (int step = 1; step < team.size; ++step) {
        const int rank = (team.rank + step) % team.size;
        if (!is_near(team, rank))
            send(team, rank, incoming + nth(team.rank), row + nth(rank), bytes,
                 team.own.from(cell.index, team.rank), cell.number);
    }
    for (int step = 0; step < team.size; ++step) {
        const int rank = (team.rank + step) % team.size;
        const std::byte* block = incoming + nth(rank);
        if (is_near(team, rank)) {
            const Slot& slot = slot_of(team, rank);
            await(slot.ready(cell.index), cell.number);
            block = slot.data(cell.index) + nth(team.rank);
        } else {
            await(team.own.from(cell.index, rank), cell.number);
        }
        copy_strided(dest + blocks.dest_offset(rank), blocks.dest_stride, block, 1, blocks);
    }
}

void alltoall_large(Team& team, std::byte* dest, const std::byte* source, const Blocks& blocks) {
    sync_team(team);
    std::byte* place = dest + blocks.dest_offset(team.rank);
    for (int step = 1; step < team.size; ++step) {
        const int rank = (team.rank + step) % team.size;
        const std::byte* block = source + blocks.source_offset(rank);
        if (blocks.plain())
            put(*team.context, place, block, blocks.bytes(), rank, !is_near(team, rank));
        else
            put_strided(*team.context, place, block, blocks.dest_stride, blocks.source_stride, blocks.element,
                        blocks.count, rank);
    }
    copy_strided(place, blocks.dest_stride, source + blocks.source_offset(team.rank), blocks.source_stride,
                 blocks);
    quiet(*team.context);
    sync_team(team);
}

void exchange(Team& team, void* dest, const void* source, const Blocks& blocks) {
    if (team.size == 0 || blocks.bytes() == 0) return;
    check_symmetric("dest", dest, blocks.extent(blocks.dest_stride, team.size));
    check_symmetric("source", source, blocks.extent(blocks.source_stride, team.size));
    auto* to = static_cast<std::byte*>(dest);
    const auto* from = static_cast<const std::byte*>(source);
    if (team.size == 1)
        copy_strided(to, blocks.dest_stride, from, blocks.source_stride, blocks);
    else if (blocks.bytes() <= cell_bytes / 2 / static_cast<std::size_t>(team.size))
        alltoall_small(team, to, from, blocks);
    else
        alltoall_large(team, to, from, blocks);
}

}  // namespace

void alltoall(Team& team, void* dest, const void* source, std::size_t bytes) {
    exchange(team, dest, source, {1, bytes, 1, 1});
}

void alltoalls(Team& team, void* dest, const void* source, std::ptrdiff_t dest_stride,
               std::ptrdiff_t source_stride, std::size_t element, std::size_t count) {
    if (dest_stride < 1 || source_stride < 1) fail("a stride is below 1");
    exchange(team, dest, source, {element, count, dest_stride, source_stride});
}

}  // namespace offpath::shmem
