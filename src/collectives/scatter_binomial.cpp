// Blocks go down a binomial tree. A rank receives the blocks of its subtree as one message, and sends each
// child the blocks of the child's subtree. There are ceil(log2(n)) hops, and few messages at the root. This
// suits small blocks.
#include "collectives/collectives.h"
#include "collectives/patterns/binomial_tree.h"
#include "collectives/patterns/subtree.h"
#include "schedule/builder.h"

namespace offpath::collectives {

Schedule scatter_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place) {
    schedule::Builder builder(team.rank, team.size);
    const BinomialTree tree{team.rank, team.size, root};
    const Subtrees subtrees{team.size, root};
    const std::vector<std::uint32_t> children = tree.children();
    if (tree.is_root()) {
        const std::uint32_t send_slot = builder.user_slot(team.size * bytes);
        const std::uint32_t recv_slot = in_place ? send_slot : builder.user_slot(bytes);
        if (bytes == 0) return builder.finish();
        for (std::uint32_t child : children)
            for (const Subtrees::Run& run : subtrees.runs_of(child))
                builder.send(child, run.index, {send_slot, run.rank * bytes}, run.count * bytes);
        if (!in_place) builder.copy({send_slot, root * bytes}, {recv_slot, 0}, bytes);
        return builder.finish();
    }
    const std::uint32_t recv_slot = builder.user_slot(bytes);
    if (bytes == 0) return builder.finish();
    const bool from_root = tree.parent() == root;
    if (children.empty()) {
        builder.recv(tree.parent(), 0, {recv_slot, 0}, bytes);
        return builder.finish();
    }
    const std::uint32_t scratch = builder.scratch_slot(subtrees.count(team.rank) * bytes);
    std::vector<schedule::OpId> arrived;
    std::uint64_t at = 0;
    for (const Subtrees::Run& run : from_root ? subtrees.runs_of(team.rank) : subtrees.whole(team.rank)) {
        arrived.push_back(builder.recv(tree.parent(), run.index, {scratch, at * bytes}, run.count * bytes));
        at += run.count;
    }
    const auto after_arrival = [&](schedule::OpId op) {
        for (schedule::OpId arrival : arrived)
            builder.depend(op, arrival);
    };
    for (std::uint32_t child : children) {
        const std::uint64_t place = subtrees.place(child) - subtrees.place(team.rank);
        after_arrival(builder.send(child, 0, {scratch, place * bytes}, subtrees.count(child) * bytes));
    }
    after_arrival(builder.copy({scratch, 0}, {recv_slot, 0}, bytes));
    return builder.finish();
}

}  // namespace offpath::collectives
