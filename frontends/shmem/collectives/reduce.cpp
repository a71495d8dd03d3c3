// Reductions. Each member's result is computed in the order of members and groups.
//
// Small: every member reads the vectors of all members of its node from their cells. With several nodes,
// leaders combine their nodes' vectors and continue by recursive doubling; the members of each node then read
// the result.
//
// Large: the vector is split over the first members of each node, as many as the smallest node has. Each of
// these members first combines its part of its node's vectors. Then it combines its group's share of that
// part: it reads the share from its counterparts, combines them and puts the result back. In the end every
// member reads the other parts from members of its node.

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/collectives.h"
#include "collectives/steps.h"

namespace offpath::shmem {

namespace {

// A cell has the member's vector, the result, and one vector for each message between leaders.
struct Small {
    std::size_t bytes;
    std::byte* base;
    std::byte* own() const { return base; }
    std::byte* result() const { return base + bytes; }
    std::byte* message(int i) const { return base + (static_cast<std::size_t>(i) + 2) * bytes; }
};

// The number of messages: one that is folded in first, one for each round of doubling, and one that returns
// the result last.
int messages(const Team& team) {
    return team.group_count() == 1
               ? -1
               : 2 + static_cast<int>(std::bit_width(static_cast<unsigned>(team.group_count())));
}

bool fits(const Team& team, std::size_t bytes) {
    const int vectors = 2 + messages(team);
    // Every member reads all vectors of its node.
    return bytes <= cell_bytes / static_cast<std::size_t>(vectors) && bytes <= (64 << 10) / team.near.size();
}

void combine_near(Team& team, const Cell& cell, std::byte* into, std::size_t bytes, std::size_t count,
                  const Reducer& reducer) {
    bool first = true;
    for (const Slot& slot : team.near) {
        await(slot.ready(cell.index), cell.number);
        if (first)
            std::memcpy(into, slot.data(cell.index), bytes);
        else
            reducer.combine(into, slot.data(cell.index), count);
        first = false;
    }
}

// Recursive doubling over the leaders, with `small.result()` on each. Groups beyond the largest power of two
// are folded in first and get the result last. Partners combine in the order of groups, so they get the same
// bits.
class Doubling {
  public:
    Doubling(Team& team, const Cell& cell, const Small& small, std::size_t count, const Reducer& reducer)
        : team_(team), cell_(cell), small_(small), count_(count), reducer_(reducer) {}

    void run() {
        const int groups = team_.group_count(), me = team_.group();
        const int inner = static_cast<int>(std::bit_floor(static_cast<unsigned>(groups)));
        const int last = messages(team_) - 1;
        if (me >= inner) {
            give(me - inner, 0);
            take(me - inner);
            std::memcpy(small_.result(), small_.message(last), small_.bytes);
            return;
        }
        if (me + inner < groups) {
            take(me + inner);
            reducer_.combine(small_.result(), small_.message(0), count_);
        }
        for (int round = 1, distance = 1; distance < inner; ++round, distance *= 2) {
            const int partner = me ^ distance;
            give(partner, round);
            take(partner);
            std::byte* theirs = small_.message(round);
            if (partner > me) {
                reducer_.combine(small_.result(), theirs, count_);
            } else {
                reducer_.combine(theirs, small_.result(), count_);
                std::memcpy(small_.result(), theirs, small_.bytes);
            }
        }
        if (me + inner < groups) give(me + inner, last);
    }

  private:
    // Each leader sends at most one message to another one, so one word for each sender is enough.
    void give(int group, int message) {
        send(team_, leader_of(team_, group), small_.message(message), small_.result(), small_.bytes,
             team_.own.from(cell_.index, team_.rank), cell_.number);
    }
    void take(int group) { await(team_.own.from(cell_.index, leader_of(team_, group)), cell_.number); }

    Team& team_;
    const Cell& cell_;
    const Small& small_;
    std::size_t count_;
    const Reducer& reducer_;
};

void combine_cells(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer) {
    const Cell cell = next_cell(team);
    const std::size_t bytes = count * reducer.element;
    const Small small{bytes, team.own.data(cell.index)};
    std::memcpy(small.own(), source, bytes);
    publish(team.own.ready(cell.index), cell.number);
    if (team.group_count() == 1) {
        combine_near(team, cell, static_cast<std::byte*>(dest), bytes, count, reducer);
        return;
    }
    const Slot& leader = team.near[0];
    if (team.leads()) {
        combine_near(team, cell, small.result(), bytes, count, reducer);
        Doubling(team, cell, small, count, reducer).run();
        publish(leader.done(cell.index), cell.number);
    } else {
        await(leader.done(cell.index), cell.number);
    }
    std::memcpy(dest, leader.data(cell.index) + bytes, bytes);
}

class Large {
  public:
    Large(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer)
        : team_(team),
          dest_(static_cast<std::byte*>(dest)),
          source_(static_cast<const std::byte*>(source)),
          count_(count),
          element_(reducer.element),
          reducer_(reducer) {
        lanes_ = team.near.size();
        for (const std::vector<int>& group : team.groups)
            lanes_ = std::min(lanes_, group.size());
    }

    void run() {
        sync_team(team_);
        const auto place = static_cast<std::size_t>(team_.place());
        if (place < lanes_) {
            const Part mine = part_of(count_, element_, place, lanes_);
            combine_node(mine);
            if (team_.group_count() > 1) combine_groups(mine);
        } else if (team_.group_count() > 1) {
            sync_team(team_);
        }
        sync_team(team_);
        for (std::size_t lane = 0; lane < lanes_; ++lane) {
            const Part part = part_of(count_, element_, lane, lanes_);
            if (lane == place || part.size() == 0) continue;
            std::byte* at = dest_ + part.begin * element_;
            get(*team_.context, at, at, part.size() * element_, team_.mine()[lane], false);
        }
        sync_team(team_);
    }

  private:
    // The number of elements that are combined at a time in this PE's slot.
    std::size_t block(std::size_t vectors) const {
        return Slot::scratch_bytes / vectors / line * line / element_;
    }

    // Combines in the scratch area, so that source and dest may be the same.
    void combine_node(Part part) {
        std::byte* sum = team_.own.scratch();
        const std::size_t step = block(4);
        std::byte* copy = sum + Slot::scratch_bytes / 4;
        for (std::size_t at = part.begin; at < part.end; at += step) {
            const std::size_t n = std::min(step, part.end - at), bytes = n * element_;
            const std::byte* from = source_ + at * element_;
            bool first = true;
            for (const int rank : team_.mine()) {
                const auto* theirs = static_cast<const std::byte*>(
                    rank == team_.rank ? from : pointer(from, team_.pes[static_cast<std::size_t>(rank)]));
                if (theirs == nullptr) {
                    get(*team_.context, first ? sum : copy, from, bytes, rank, false);
                    theirs = copy;
                } else if (first) {
                    std::memcpy(sum, theirs, bytes);
                }
                if (!first) reducer_.combine(sum, theirs, n);
                first = false;
            }
            std::memcpy(dest_ + at * element_, sum, bytes);
        }
    }

    void combine_groups(Part lane) {
        sync_team(team_);
        const auto groups = static_cast<std::size_t>(team_.group_count());
        const auto me = static_cast<std::size_t>(team_.group());
        const Part inner = part_of(lane.size(), element_, me, groups);
        const Part part{lane.begin + inner.begin, lane.begin + inner.end};
        const std::size_t step = block(groups), room = Slot::scratch_bytes / groups / line * line;
        std::byte* scratch = team_.own.scratch();
        for (std::size_t at = part.begin; at < part.end; at += step) {
            const std::size_t n = std::min(step, part.end - at), bytes = n * element_;
            std::byte* own = dest_ + at * element_;
            for (std::size_t i = 1; i < groups; ++i) {
                const std::size_t group = (me + i) % groups;
                get(*team_.context, scratch + group * room, own, bytes, partner(group), true);
            }
            std::memcpy(scratch + me * room, own, bytes);
            quiet(*team_.context);
            for (std::size_t group = 1; group < groups; ++group)
                reducer_.combine(scratch, scratch + group * room, n);
            std::memcpy(own, scratch, bytes);
            for (std::size_t i = 1; i < groups; ++i)
                put(*team_.context, own, own, bytes, partner((me + i) % groups), true);
        }
        quiet(*team_.context);
    }

    int partner(std::size_t group) const {
        return team_.groups[group][static_cast<std::size_t>(team_.place())];
    }

    Team& team_;
    std::byte* dest_;
    const std::byte* source_;
    std::size_t count_, element_, lanes_ = 1;
    const Reducer& reducer_;
};

}  // namespace

void combine_small(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer) {
    if (team.size > 1)
        combine_cells(team, dest, source, count, reducer);
    else if (dest != source)
        std::memmove(dest, source, count * reducer.element);
}

void reduce(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer) {
    if (team.size == 0 || count == 0) return;
    check_symmetric("dest", dest, count * reducer.element);
    check_symmetric("source", source, count * reducer.element);
    if (team.size == 1 || (count <= cell_bytes && fits(team, count * reducer.element)))
        combine_small(team, dest, source, count, reducer);
    else
        Large(team, dest, source, count, reducer).run();
}

}  // namespace offpath::shmem
