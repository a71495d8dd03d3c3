// Blocks go up a binomial tree. A rank collects the blocks of its subtree, whose ranks are consecutive, and
// sends them on as one message. There are ceil(log2(n)) hops, and few messages at the root. This suits small
// blocks.
#include "collectives/collectives.h"
#include "collectives/patterns/binomial_tree.h"
#include "collectives/patterns/subtree.h"
#include "schedule/builder.h"

namespace offpath::collectives {

Schedule gather_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place) {
    schedule::Builder builder(team.rank, team.size);
    const BinomialTree tree{team.rank, team.size, root};
    const Subtrees subtrees{team.size, root};
    const std::uint32_t first = builder.user_slot(tree.is_root() && in_place ? team.size * bytes : bytes);
    if (tree.is_root()) {
        const std::uint32_t recv_slot = in_place ? first : builder.user_slot(team.size * bytes);
        if (bytes == 0) return builder.finish();
        for (std::uint32_t child : tree.children())
            for (const Subtrees::Run& run : subtrees.runs_of(child))
                builder.recv(child, run.index, {recv_slot, run.rank * bytes}, run.count * bytes);
        if (!in_place) builder.copy({first, 0}, {recv_slot, root * bytes}, bytes);
        return builder.finish();
    }
    if (bytes == 0) return builder.finish();
    const std::vector<std::uint32_t> children = tree.children();
    const bool to_root = tree.parent() == root;
    if (children.empty()) {
        builder.send(tree.parent(), 0, {first, 0}, bytes);
        return builder.finish();
    }
    const std::uint32_t scratch = builder.scratch_slot(subtrees.count(team.rank) * bytes);
    std::vector<schedule::OpId> collected{builder.copy({first, 0}, {scratch, 0}, bytes)};
    for (std::uint32_t child : children) {
        const std::uint64_t at = subtrees.place(child) - subtrees.place(team.rank);
        collected.push_back(builder.recv(child, 0, {scratch, at * bytes}, subtrees.count(child) * bytes));
    }
    // The root's buffer is in the order of ranks, and the ranks of a subtree may continue at rank 0.
    std::uint64_t at = 0;
    for (const Subtrees::Run& run : to_root ? subtrees.runs_of(team.rank) : subtrees.whole(team.rank)) {
        const schedule::OpId send =
            builder.send(tree.parent(), run.index, {scratch, at * bytes}, run.count * bytes);
        for (schedule::OpId op : collected)
            builder.depend(send, op);
        at += run.count;
    }
    return builder.finish();
}

}  // namespace offpath::collectives
