// collect and fcollect: every member gets the blocks of all, one after the other.
//
// Small: members put their blocks into cells of their node; leaders concatenate and exchange them.
// Large: each member puts its block to one member of each other node; the other members of that node read it
// from there.

#include <cstring>
#include <vector>

#include "collectives/collectives.h"
#include "collectives/steps.h"

namespace offpath::shmem {

namespace {

// The offsets of the blocks in `dest`.
struct Even {
    std::size_t bytes;
    std::size_t offset(int rank) const { return static_cast<std::size_t>(rank) * bytes; }
};
struct Uneven {
    std::vector<std::size_t> offsets;  // one more than members
    std::size_t offset(int rank) const { return offsets[static_cast<std::size_t>(rank)]; }
};

template <class Layout>
std::size_t size_of(const Layout& layout, int rank) {
    return layout.offset(rank + 1) - layout.offset(rank);
}

// Members of a group whose blocks are contiguous.
struct Run {
    int first, last;
};
std::vector<Run> runs_of(const std::vector<int>& members) {
    std::vector<Run> runs;
    for (const int rank : members) {
        if (!runs.empty() && runs.back().last + 1 == rank)
            runs.back().last = rank;
        else
            runs.push_back({rank, rank});
    }
    return runs;
}

// Called by a leader when its group's blocks are in `whole`. Sends them to the other leaders and waits for
// theirs.
template <class Layout>
void exchange_groups(Team& team, const Cell& cell, const Layout& layout, std::byte* whole) {
    const int groups = team.group_count();
    const std::vector<Run> runs = runs_of(team.mine());
    std::uint64_t* word = team.own.from(cell.index, team.rank);
    for (int step = 1; step < groups; ++step) {
        const int to = leader_of(team, (team.group() + step) % groups);
        for (const Run& run : runs) {
            std::byte* begin = whole + layout.offset(run.first);
            const std::size_t bytes = layout.offset(run.last + 1) - layout.offset(run.first);
            if (runs.size() == 1)
                send(team, to, begin, begin, bytes, word, cell.number);
            else
                put(*team.context, begin, begin, bytes, to, false);
        }
        if (runs.size() == 1) continue;
        fence(*team.context);
        tell(team, to, word, cell.number);
    }
    for (int group = 0; group < groups; ++group)
        if (group != team.group()) await(team.own.from(cell.index, leader_of(team, group)), cell.number);
}

template <class Layout>
void gather_near(Team& team, const Cell& cell, const Layout& layout, std::byte* dest) {
    for (const int rank : team.mine()) {
        const Slot& slot = slot_of(team, rank);
        await(slot.ready(cell.index), cell.number);
        std::memcpy(dest + layout.offset(rank), slot.data(cell.index), size_of(layout, rank));
    }
}

// One half of a cell is for the member's own block, the other for the whole result.
template <class Layout>
void gather_small(Team& team, std::byte* dest, const void* source, const Layout& layout) {
    const Cell cell = next_cell(team);
    const std::size_t total = layout.offset(team.size);
    std::memcpy(team.own.data(cell.index), source, size_of(layout, team.rank));
    publish(team.own.ready(cell.index), cell.number);
    if (team.group_count() == 1) {
        gather_near(team, cell, layout, dest);
        return;
    }
    const Slot& slot = team.near[0];
    std::byte* whole = slot.data(cell.index) + cell_bytes / 2;
    if (team.leads()) {
        gather_near(team, cell, layout, whole);
        exchange_groups(team, cell, layout, whole);
        publish(slot.done(cell.index), cell.number);
    } else {
        await(slot.done(cell.index), cell.number);
    }
    std::memcpy(dest, whole, total);
}

template <class Layout>
void gather_large(Team& team, std::byte* dest, const void* source, const Layout& layout) {
    sync_team(team);
    std::byte* own = dest + layout.offset(team.rank);
    const std::size_t bytes = size_of(layout, team.rank);
    if (own != source) std::memmove(own, source, bytes);
    const int groups = team.group_count();
    if (bytes > 0)
        for (int step = 1; step < groups; ++step)
            put(*team.context, own, own, bytes,
                counterpart(team, (team.group() + step) % groups, team.place()), true);
    quiet(*team.context);
    sync_team(team);
    for (int step = 1; step < team.size; ++step) {
        const int rank = (team.rank + step) % team.size;
        const int holder = is_near(team, rank) ? rank
                                               : counterpart(team, team.group(),
                                                             team.place_of[static_cast<std::size_t>(rank)]);
        if (holder == team.rank || size_of(layout, rank) == 0) continue;
        std::byte* block = dest + layout.offset(rank);
        get(*team.context, block, block, size_of(layout, rank), holder, false);
    }
    sync_team(team);
}

template <class Layout>
void gather(Team& team, void* dest, const void* source, const Layout& layout) {
    auto* to = static_cast<std::byte*>(dest);
    const std::size_t total = layout.offset(team.size);
    if (total == 0) return;
    check_symmetric("dest", dest, total);
    check_symmetric("source", source, size_of(layout, team.rank));
    if (team.size == 1) {
        if (dest != source) std::memmove(dest, source, total);
    } else if (total <= cell_bytes / 2) {
        gather_small(team, to, source, layout);
    } else {
        gather_large(team, to, source, layout);
    }
}

}  // namespace

void fcollect(Team& team, void* dest, const void* source, std::size_t bytes) {
    gather(team, dest, source, Even{bytes});
}

void collect(Team& team, void* dest, const void* source, std::size_t bytes) {
    if (team.size == 0) return;
    const auto n = static_cast<std::size_t>(team.size);
    Uneven layout;
    layout.offsets.resize(n + 1);
    std::uint64_t mine = bytes;
    std::vector<std::uint64_t> sizes(n, bytes);
    if (n * sizeof mine <= cell_bytes / 2) {
        if (n > 1) gather_small(team, reinterpret_cast<std::byte*>(sizes.data()), &mine, Even{sizeof mine});
    } else {
        // There are too many entries for one cell. Between two syncs the memory of all cells is free, so use
        // all of it at once.
        if ((n + 1) * sizeof mine > Slot::scratch_bytes)
            fail("collect on more PEs than its memory has room for");
        sync_team(team);
        auto* own = reinterpret_cast<std::uint64_t*>(team.own.scratch());
        own[n] = mine;
        gather_large(team, team.own.scratch(), own + n, Even{sizeof mine});
        std::memcpy(sizes.data(), own, n * sizeof mine);
        sync_team(team);
    }
    for (std::size_t i = 0; i < n; ++i)
        layout.offsets[i + 1] = layout.offsets[i] + sizes[i];
    gather(team, dest, source, layout);
}

}  // namespace offpath::shmem
