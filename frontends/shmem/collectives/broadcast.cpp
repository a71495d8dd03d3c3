// Broadcast. A group's speaker is the root in the root's group, and the leader in all others.
//
// Small: a binomial tree over the groups passes the data from speaker to speaker, and each group reads them
// in its speaker's cell. Large: the root scatters parts to the other groups' speakers, which exchange them
// (scatter-allgather). All other members read their speaker's memory.

#include <fmt/format.h>

#include <cstring>

#include "collectives/collectives.h"
#include "collectives/steps.h"

namespace offpath::shmem {

namespace {

struct Tree {
    Tree(const Team& t, int r) : team(t), root(r), root_group(t.group_of[static_cast<std::size_t>(r)]) {}

    int speaker(int group) const { return group == root_group ? root : leader_of(team, group); }
    // Numbers groups by their distance from the root's group.
    int at(int distance) const { return speaker((root_group + distance) % team.group_count()); }
    int distance() const { return (team.group() - root_group + team.group_count()) % team.group_count(); }

    const Team& team;
    int root, root_group;
};

void broadcast_small(Team& team, void* dest, const void* source, std::size_t bytes, int root, bool wanted) {
    const Cell cell = next_cell(team);
    const Tree tree(team, root);
    const int speaker = tree.speaker(team.group());
    std::byte* data = team.own.data(cell.index);
    if (team.rank == speaker) {
        const int groups = team.group_count(), distance = tree.distance();
        int reach = 1;
        if (team.rank == root) {
            std::memcpy(data, source, bytes);
            while (reach < groups)
                reach *= 2;
        } else {
            while ((distance & reach) == 0)
                reach *= 2;
            await(team.own.from(cell.index, tree.at(distance - reach)), cell.number);
        }
        publish(team.own.ready(cell.index), cell.number);
        for (reach /= 2; reach > 0; reach /= 2)
            if (distance + reach < groups)
                send(team, tree.at(distance + reach), data, data, bytes, team.own.from(cell.index, team.rank),
                     cell.number);
    } else {
        const Slot& from = slot_of(team, speaker);
        await(from.ready(cell.index), cell.number);
        data = from.data(cell.index);
    }
    if (wanted) std::memcpy(dest, data, bytes);
}

// Scatters the parts over the speakers other than the root. The speakers then exchange the parts.
void spread(Team& team, const Cell& cell, const Tree& tree, std::byte* dest, const void* source,
            std::size_t bytes) {
    const int others = team.group_count() - 1;
    const auto part = [&](int distance) {
        return part_of(bytes, 1, static_cast<std::size_t>(distance - 1), static_cast<std::size_t>(others));
    };
    const auto give = [&](int to, Part p, const std::byte* from) {
        if (p.size() == 0) return tell(team, tree.at(to), team.own.from(cell.index, team.rank), cell.number);
        put_signal(*team.context, dest + p.begin, from + p.begin, p.size(),
                   team.own.from(cell.index, team.rank), cell.number, signal_set, tree.at(to), true);
    };
    if (team.rank == tree.root) {
        for (int to = 1; to <= others; ++to)
            give(to, part(to), static_cast<const std::byte*>(source));
        quiet(*team.context);
        return;
    }
    const int distance = tree.distance();
    await(team.own.from(cell.index, tree.root), cell.number);
    for (int step = 1; step < others; ++step)
        give((distance - 1 + step) % others + 1, part(distance), dest);
    for (int other = 1; other <= others; ++other)
        if (other != distance) await(team.own.from(cell.index, tree.at(other)), cell.number);
    quiet(*team.context);
}

void broadcast_large(Team& team, void* dest, const void* source, std::size_t bytes, int root, Root kind) {
    const Cell cell = next_cell(team);
    const Tree tree(team, root);
    const int speaker = tree.speaker(team.group());
    sync_team(team);
    if (team.rank == speaker) {
        if (team.group_count() > 1) spread(team, cell, tree, static_cast<std::byte*>(dest), source, bytes);
        publish(team.own.done(cell.index), cell.number);
        if (team.rank == root && kind == Root::receives && dest != source) std::memcpy(dest, source, bytes);
    } else if (speaker == root) {
        get(*team.context, dest, source, bytes, root, false);
    } else {
        await(slot_of(team, speaker).done(cell.index), cell.number);
        get(*team.context, dest, dest, bytes, speaker, false);
    }
    sync_team(team);
}

}  // namespace

void broadcast(Team& team, void* dest, const void* source, std::size_t bytes, int root, Root kind) {
    if (team.size == 0) return;
    if (root < 0 || root >= team.size)
        fail(fmt::format("PE_root {} is none of 0 to {}", root, team.size - 1));
    if (bytes == 0) return;
    check_symmetric("dest", dest, bytes);
    check_symmetric("source", source, bytes);
    const bool wanted = team.rank != root || (kind == Root::receives && dest != source);
    if (team.size == 1) {
        if (wanted) std::memmove(dest, source, bytes);
    } else if (bytes <= cell_bytes) {
        broadcast_small(team, dest, source, bytes, root, wanted);
    } else {
        broadcast_large(team, dest, source, bytes, root, kind);
    }
}

}  // namespace offpath::shmem
