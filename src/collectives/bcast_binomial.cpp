// The message goes down a binomial tree, to the largest subtree first. It takes ceil(log2(n)) hops. This
// suits small messages.
#include "collectives/collectives.h"
#include "collectives/patterns/binomial_tree.h"
#include "schedule/builder.h"

namespace offpath::collectives {

Schedule bcast_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes) {
    schedule::Builder builder(team.rank, team.size);
    const schedule::BufferRef buffer{builder.user_slot(bytes), 0};
    if (bytes == 0) return builder.finish();

    const BinomialTree tree{team.rank, team.size, root};
    schedule::OpId arrival = 0;
    if (!tree.is_root()) arrival = builder.recv(tree.parent(), 0, buffer, bytes);
    for (std::uint32_t child : tree.children()) {
        const schedule::OpId send = builder.send(child, 0, buffer, bytes);
        if (!tree.is_root()) builder.depend(send, arrival);
    }
    return builder.finish();
}

}  // namespace offpath::collectives
