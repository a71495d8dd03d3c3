// In step k, a rank exchanges its partial result with the rank whose number differs in bit k, and both
// combine the two. After log2(n) steps all ranks have the result. This suits small data. Ranks beyond the
// largest power of two first give their operands to a neighbour, and get the result from it at the end. R.
// Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH (2005),
// section 4.5.
#include "collectives/collectives.h"
#include "schedule/builder.h"

#include <bit>
#include <optional>

namespace offpath::collectives {
namespace {

// The first 2 * surplus ranks form pairs; the odd rank of a pair acts for both.
struct Fold {
    std::uint32_t rank, size;
    std::uint32_t actors() const { return std::bit_floor(size); }
    std::uint32_t surplus() const { return size - actors(); }
    bool paired() const { return rank < 2 * surplus(); }
    std::uint32_t actor() const { return paired() ? rank / 2 : rank - surplus(); }
    std::uint32_t rank_of(std::uint32_t actor) const {
        return actor < surplus() ? 2 * actor + 1 : actor + surplus();
    }
};

}  // namespace

Schedule allreduce_recursive_doubling(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place) {
    schedule::Builder builder(team.rank, team.size);
    const schedule::BufferRef own{builder.user_slot(bytes), 0};
    const schedule::BufferRef result{in_place ? own.slot : builder.user_slot(bytes), 0};
    if (bytes == 0) return builder.finish();
    const Fold fold{team.rank, team.size};
    if (fold.paired() && team.rank % 2 == 0) {
        const schedule::OpId send = builder.send(team.rank + 1, 0, own, bytes);
        const schedule::OpId recv = builder.recv(team.rank + 1, 1, result, bytes);
        if (in_place) builder.depend(recv, send);
        return builder.finish();
    }

    const auto steps = static_cast<std::uint32_t>(std::countr_zero(fold.actors()));
    const std::uint32_t scratch = builder.scratch_slot((steps + 2) * bytes);
    std::uint64_t used = 0;
    schedule::BufferRef sum = own;
    std::optional<schedule::OpId> ready;
    std::vector<schedule::OpId> own_sends;
    const auto receive = [&](std::uint32_t peer, std::uint64_t tag, schedule::BufferRef& into) {
        into = {scratch, used++ * bytes};
        return builder.recv(peer, tag, into, bytes);
    };
    // sum = left (reduction) right, computed in `left`.
    const auto combine = [&](schedule::BufferRef left, schedule::BufferRef right,
                             std::initializer_list<schedule::OpId> after) {
        const schedule::OpId reduce = builder.reduce(what.type, what.reduction, right, left, bytes);
        builder.depend(reduce, after);
        if (ready) builder.depend(reduce, *ready);
        sum = left;
        ready = reduce;
    };
    if (fold.paired()) {
        schedule::BufferRef left;
        const schedule::OpId recv = receive(team.rank - 1, 0, left);
        combine(left, own, {recv});
    }
    for (std::uint32_t step = 0; step < steps; ++step) {
        const std::uint32_t other = fold.actor() ^ (1u << step), peer = fold.rank_of(other);
        schedule::BufferRef theirs;
        const schedule::OpId recv = receive(peer, 2 + step, theirs);
        const schedule::OpId send = builder.send(peer, 2 + step, sum, bytes);
        if (ready) builder.depend(send, *ready);
        if (sum == own) own_sends.push_back(send);
        if (other < fold.actor()) {
            combine(theirs, sum, {recv});
            continue;
        }
        if (sum == own) {
            sum = {scratch, used++ * bytes};
            ready = builder.copy(own, sum, bytes);
        }
        combine(sum, theirs, {recv, send});
    }
    if (fold.paired()) builder.depend(builder.send(team.rank - 1, 1, sum, bytes), *ready);
    if (sum != result) {
        const schedule::OpId copy = builder.copy(sum, result, bytes);
        if (ready) builder.depend(copy, *ready);
        for (schedule::OpId send : own_sends)
            if (in_place) builder.depend(copy, send);
    }
    return builder.finish();
}

}  // namespace offpath::collectives
