// Teams of the job of hosts and devices (regions.h), as hosts and devices number them. A mixed team has both
// ends of its ranks: the host of rank r is rank 2r of the team, and the device is rank 2r + 1. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::mpi::mixed_teams {

enum class End : std::uint32_t { host = 0, device = 1 };

inline std::uint32_t member(std::uint32_t rank, End end) {
    return 2 * rank + static_cast<std::uint32_t>(end);
}
inline std::uint32_t rank_of(std::uint32_t member) {
    return member / 2;
}

// Masks of the sources of a receive (offpath_recv_masked): one member, both ends of a rank, all members of
// one end.
inline constexpr std::uint32_t one_member = UINT32_MAX;
inline constexpr std::uint32_t both_ends = ~std::uint32_t{1};
inline constexpr std::uint32_t one_end = 1;

// The members, by the ranks in the world.
inline std::vector<std::uint32_t> members(std::span<const std::uint32_t> world_ranks) {
    std::vector<std::uint32_t> all;
    for (const std::uint32_t rank : world_ranks)
        for (const End end : {End::host, End::device})
            all.push_back(member(rank, end));
    return all;
}
inline std::vector<std::uint32_t> devices(std::span<const std::uint32_t> world_ranks) {
    std::vector<std::uint32_t> all;
    for (const std::uint32_t rank : world_ranks)
        all.push_back(member(rank, End::device));
    return all;
}

// The two kinds of teams have ids of their own. `number` tells those of the same ranks apart; the messages
// of hosts and devices use 0, and the windows the numbers after it.
enum class TeamKind : std::uint64_t { mixed = 1, devices = 2 };
inline std::uint64_t id(TeamKind kind, std::span<const std::uint32_t> world_ranks, std::uint64_t number) {
    std::uint64_t mixed = 0x9e3779b97f4a7c15 * (number + 1);
    const auto stir = [&](std::uint64_t word) {
        mixed ^= word;
        for (const int shift : {30, 27, 31}) {
            mixed ^= mixed >> shift;
            mixed *= 0xbf58476d1ce4e5b9;
        }
    };
    stir(world_ranks.size());
    for (const std::uint32_t rank : world_ranks)
        stir(rank + 1);
    constexpr int bits = 60;
    return static_cast<std::uint64_t>(kind) << bits | (mixed >> (64 - bits));
}

}  // namespace offpath::mpi::mixed_teams
