// Partial results go up a binomial tree, from the smallest subtree first. There are ceil(log2(n)) hops. This
// suits small data.
#include "collectives/collectives.h"
#include "collectives/patterns/binomial_tree.h"
#include "schedule/builder.h"

#include <algorithm>

namespace offpath::collectives {

Schedule reduce_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what,
                         bool in_place) {
    schedule::Builder builder(team.rank, team.size);
    const BinomialTree tree{team.rank, team.size, root};
    const schedule::BufferRef own{builder.user_slot(bytes), 0};
    const std::uint32_t recv_slot = !tree.is_root() || in_place ? own.slot : builder.user_slot(bytes);
    if (bytes == 0) return builder.finish();

    std::vector<std::uint32_t> children = tree.children();
    std::ranges::reverse(children);
    schedule::BufferRef sum = own;
    schedule::OpId summed = 0;
    if (!children.empty()) {
        const std::uint32_t scratch = builder.scratch_slot(children.size() * bytes);
        sum = {scratch, 0};
        for (std::size_t i = 0; i < children.size(); ++i) {
            const schedule::BufferRef part{scratch, i * bytes};
            const schedule::OpId recv = builder.recv(children[i], 0, part, bytes);
            const schedule::OpId reduce =
                builder.reduce(what.type, what.reduction, i == 0 ? own : part, sum, bytes);
            builder.depend(reduce, recv);
            if (i > 0) builder.depend(reduce, summed);
            summed = reduce;
        }
    }
    if (tree.is_root() && in_place && children.empty()) return builder.finish();
    const schedule::OpId last = tree.is_root() ? builder.copy(sum, {recv_slot, 0}, bytes)
                                               : builder.send(tree.parent(), 0, sum, bytes);
    if (!children.empty()) builder.depend(last, summed);
    return builder.finish();
}

}  // namespace offpath::collectives
