#include "sim/programs/host_algorithms.h"

#include "collectives/patterns/binomial_tree.h"
#include "schedule/builder.h"
#include "sim/programs/exchanges_by_rank.h"

#include <bit>

namespace offpath::sim {
namespace {

using collectives::Reducing;
using collectives::TeamShape;
using schedule::BufferRef;
using schedule::OpId;
using schedule::Schedule;

// The root sends to each rank.
Schedule bcast_linear(TeamShape team, std::uint32_t root, std::uint64_t bytes) {
    schedule::Builder builder(team.rank, team.size);
    const BufferRef buffer{builder.user_slot(bytes), 0};
    for (std::uint32_t rank = 0; rank < team.size; ++rank) {
        if (rank == root) continue;
        if (team.rank == root) builder.send(rank, 0, buffer, bytes);
        if (team.rank == rank) builder.recv(root, 0, buffer, bytes);
    }
    return builder.finish();
}

// Sums up a binomial tree into `result`, one child after the other.
OpId reduce_up(schedule::Builder& builder, TeamShape team, std::uint32_t root, BufferRef own,
               BufferRef result, std::uint64_t bytes, Reducing what) {
    const collectives::BinomialTree tree{team.rank, team.size, root};
    const std::vector<std::uint32_t> children = tree.children();
    const BufferRef parts{builder.scratch_slot(std::max<std::size_t>(children.size(), 1) * bytes), 0};
    OpId last = builder.copy(own, result, bytes);
    for (std::size_t i = children.size(); i-- > 0;) {
        const BufferRef part{parts.slot, i * bytes};
        const OpId recv = builder.recv(children[i], 0, part, bytes);
        const OpId sum = builder.reduce(what.type, what.reduction, part, result, bytes);
        builder.depend(sum, {recv, last});
        last = sum;
    }
    if (tree.is_root()) return last;
    const OpId up = builder.send(tree.parent(), 0, result, bytes);
    builder.depend(up, last);
    return up;
}

// A reduction up a binomial tree, and a broadcast down the same tree.
Schedule allreduce_by_trees(TeamShape team, std::uint64_t bytes, Reducing what) {
    schedule::Builder builder(team.rank, team.size);
    const BufferRef own{builder.user_slot(bytes), 0}, result{builder.user_slot(bytes), 0};
    const collectives::BinomialTree tree{team.rank, team.size, 0};
    OpId last = reduce_up(builder, team, 0, own, result, bytes, what);
    if (!tree.is_root()) {
        const OpId down = builder.recv(tree.parent(), 1, result, bytes);
        builder.depend(down, last);
        last = down;
    }
    for (const std::uint32_t child : tree.children())
        builder.depend(builder.send(child, 1, result, bytes), last);
    return builder.finish();
}

// The whole vector is reduced at rank 0, which then sends each rank its block.
Schedule reduce_scatter_by_root(TeamShape team, std::uint64_t bytes, Reducing what) {
    schedule::Builder builder(team.rank, team.size);
    const std::uint64_t all = bytes * team.size;
    const BufferRef own{builder.user_slot(all), 0}, result{builder.user_slot(bytes), 0};
    const BufferRef whole{builder.scratch_slot(all), 0};
    const OpId last = reduce_up(builder, team, 0, own, whole, all, what);
    if (team.rank != 0) {
        builder.depend(builder.recv(0, 1, result, bytes), last);
        return builder.finish();
    }
    for (std::uint32_t rank = 1; rank < team.size; ++rank)
        builder.depend(builder.send(rank, 1, {whole.slot, rank * bytes}, bytes), last);
    builder.depend(builder.copy(whole, result, bytes), last);
    return builder.finish();
}

// Rabenseifner's reduction: ranks beyond a power of two join their neighbours, the others exchange halves of
// their part of the vector and add them until each has a sum of its own, and a binomial tree gathers these at
// the root, or all exchange them.
class Halving {
  public:
    Halving(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool for_all)
        : team_(team),
          root_(root),
          bytes_(bytes),
          what_(what),
          for_all_(for_all),
          builder_(team.rank, team.size),
          power_(std::bit_floor(team.size)),
          extra_(team.size - power_) {}

    Schedule build() {
        const BufferRef own{builder_.user_slot(bytes_), 0};
        const bool keeps = for_all_ || team_.rank == root_;
        sum_ = {keeps ? builder_.user_slot(bytes_) : builder_.scratch_slot(bytes_), 0};
        part_ = {builder_.scratch_slot(bytes_), 0};
        last_ = {builder_.copy(own, sum_, bytes_)};
        windows_ = {{0, bytes_}};
        if (team_.rank < 2 * extra_) join_neighbour();
        if (!joined_) {
            halve();
            for_all_ ? exchange() : gather();
        }
        end_for_neighbours();
        return builder_.finish();
    }

  private:
    struct Window {
        std::uint64_t begin, bytes;
    };
    // Windows are cut at whole elements of eight bytes where there are any.
    static std::uint64_t half_of(std::uint64_t bytes) { return bytes / 2 / 8 * 8; }
    std::uint32_t place() const { return team_.rank < 2 * extra_ ? team_.rank / 2 : team_.rank - extra_; }
    std::uint32_t rank_at(std::uint32_t place) const { return place < extra_ ? 2 * place : place + extra_; }
    BufferRef at(BufferRef buffer, Window window) const {
        return {buffer.slot, buffer.offset + window.begin};
    }
    static std::pair<Window, Window> halves(Window whole) {
        const std::uint64_t half = half_of(whole.bytes);
        return {{whole.begin, half}, {whole.begin + half, whole.bytes - half}};
    }

    OpId send(std::uint32_t to, Window window) {
        const OpId op = builder_.send(to, tag_, at(sum_, window), window.bytes);
        for (const OpId before : last_)
            builder_.depend(op, before);
        return op;
    }
    OpId receive(std::uint32_t from, BufferRef into, Window window) {
        const OpId op = builder_.recv(from, tag_, at(into, window), window.bytes);
        for (const OpId before : last_)
            builder_.depend(op, before);
        return op;
    }
    // A round: sends one part and adds what comes to the other.
    void swap_and_add(std::uint32_t peer, Window given, Window kept) {
        const OpId sent = send(peer, given), received = receive(peer, part_, kept);
        const OpId sum =
            builder_.reduce(what_.type, what_.reduction, at(part_, kept), at(sum_, kept), kept.bytes);
        builder_.depend(sum, {sent, received});
        last_ = {sum};
        ++tag_;
    }
    void join_neighbour() {
        const auto [low, high] = halves(windows_.back());
        if (team_.rank % 2 == 0) {
            swap_and_add(team_.rank + 1, high, low);
            last_ = {receive(team_.rank + 1, sum_, high)};
        } else {
            swap_and_add(team_.rank - 1, low, high);
            last_ = {send(team_.rank - 1, high)};
            joined_ = true;
        }
        tag_ = 2;
    }
    void halve() {
        tag_ = 2;
        for (std::uint32_t bit = 1; bit < power_; bit *= 2) {
            const std::uint32_t peer = rank_at(place() ^ bit);
            const auto [low, high] = halves(windows_.back());
            const bool keeps_low = team_.rank < peer;
            windows_.push_back(keeps_low ? low : high);
            others_.push_back(keeps_low ? high : low);
            swap_and_add(peer, others_.back(), windows_.back());
        }
    }
    void gather() {
        tag_ = 100;
        const std::uint32_t goal = root_ < 2 * extra_ ? root_ / 2 : root_ - extra_;
        for (std::uint32_t bit = power_ / 2; bit > 0; bit /= 2, ++tag_) {
            const std::uint32_t peer = rank_at(place() ^ bit);
            if (((place() ^ goal) & bit) != 0) {
                last_ = {send(peer, windows_.back())};
                return;
            }
            last_ = {receive(peer, sum_, others_.back())};
            windows_.pop_back();
            others_.pop_back();
        }
    }
    void exchange() {
        tag_ = 100;
        for (std::uint32_t bit = power_ / 2; bit > 0; bit /= 2, ++tag_) {
            const std::uint32_t peer = rank_at(place() ^ bit);
            const OpId sent = send(peer, windows_.back());
            const OpId received = receive(peer, sum_, others_.back());
            last_ = {sent, received};
            windows_.pop_back();
            others_.pop_back();
        }
    }
    // Ranks that joined a neighbour get the result from it.
    void end_for_neighbours() {
        tag_ = 200;
        if (team_.rank >= 2 * extra_) return;
        const bool wanted = for_all_ || root_ == (team_.rank | 1);
        if (!wanted) return;
        const Window whole{0, bytes_};
        joined_ ? receive(team_.rank - 1, sum_, whole) : send(team_.rank + 1, whole);
    }

    const TeamShape team_;
    const std::uint32_t root_;
    const std::uint64_t bytes_;
    const Reducing what_;
    const bool for_all_;
    schedule::Builder builder_;
    const std::uint32_t power_, extra_;
    BufferRef sum_, part_;
    std::vector<OpId> last_;  // what the next op waits for
    std::uint64_t tag_ = 1;
    std::vector<Window> windows_, others_;
    bool joined_ = false;
};

}  // namespace

std::optional<Schedule> build_of_host(const HostCollective& call, TeamShape team) {
    constexpr std::uint32_t small_team = 4;
    constexpr std::uint64_t small_vector = 64 << 10, fragment = 8 << 10;
    constexpr std::uint64_t tuned_short = 8 << 10;  // coll_tuned_decision_fixed.c
    const std::uint32_t all_at_once = team.size;
    const std::uint64_t bytes = call.bytes;
    const bool can_halve = bytes / 8 >= std::bit_floor(team.size);
    const std::vector<std::uint64_t> sizes(team.size, bytes);
    std::vector<std::uint64_t> offsets(team.size);
    for (std::uint32_t i = 0; i < team.size; ++i)
        offsets[i] = i * bytes;
    // Checked in the lab for small teams only.
    const bool by_rank = call.order == SendOrder::by_rank;
    if (call.name == "alltoall" && by_rank) return alltoallv_by_rank(team, {sizes, offsets, sizes, offsets});
    if (call.name == "allgather" && by_rank) return allgather_by_rank(team, bytes);
    if (call.name == "alltoall" && team.size <= 2 * small_team)
        return collectives::alltoall_linear(team, bytes, all_at_once);
    if (call.name == "allgather")
        return collectives::allgatherv_direct(team, sizes, offsets, false, all_at_once);
    if (call.name == "gather")
        return collectives::gatherv_linear(team, call.root, bytes, sizes, offsets, false, all_at_once);
    if (call.name == "scatter")
        return collectives::scatterv_linear(team, call.root, bytes, sizes, offsets, false, all_at_once);
    if (call.name == "bcast" && team.size <= small_team) return bcast_linear(team, call.root, bytes);
    // Whatever the size: coll_libnbc_ibcast_skip_dt_decision is true unless somebody changes it.
    if (call.name == "bcast") return collectives::bcast_binomial(team, call.root, bytes);
    if (call.name == "allreduce" && call.blocking && bytes < tuned_short)
        return collectives::allreduce_recursive_doubling(team, bytes, call.what, false);
    if (call.name == "allreduce" && (team.size < small_team || bytes < small_vector || !can_halve))
        return allreduce_by_trees(team, bytes, call.what);
    if (call.name == "allreduce") return Halving(team, 0, bytes, call.what, true).build();
    if (call.name == "reduce" && team.size > 2 && can_halve)
        return Halving(team, call.root, bytes, call.what, false).build();
    if (call.name == "reduce" && bytes >= small_vector && team.size <= small_team)
        return collectives::reduce_chain(team, call.root, bytes, call.what, false, fragment);
    if (call.name == "reduce") return collectives::reduce_binomial(team, call.root, bytes, call.what, false);
    if (call.name == "reduce_scatter") return reduce_scatter_by_root(team, bytes, call.what);
    if (call.name == "scan") return collectives::scan_chain(team, bytes, call.what, false, false, bytes);
    if (call.name == "exscan") return collectives::scan_chain(team, bytes, call.what, false, true, bytes);
    return std::nullopt;
}

}  // namespace offpath::sim
