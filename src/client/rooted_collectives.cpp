// The C API's gather, scatter and neighbourhood calls: each checks its arguments, looks the schedule up and
// starts it.
#include "client/starter.h"
#include "collectives/selection.h"

using namespace offpath;
using namespace offpath::client;

namespace {

// Checks one side of a neighbourhood.
offpath_status_t check_edges(const offpath_team& team, const void* buffer, std::uint32_t degree,
                             const uint32_t* peers, const size_t* bytes, const size_t* offsets) {
    constexpr const char* call = "offpath_ineighbor_alltoallv";
    if (degree == 0) return OFFPATH_OK;
    if (peers == nullptr || bytes == nullptr || offsets == nullptr) return invalid(call, "an array is null");
    for (std::uint32_t i = 0; i < degree; ++i)
        if (peers[i] >= team.size) return invalid(call, "a neighbour is not in the team");
    if (!fits({bytes, degree}, {offsets, degree})) return invalid(call, "sizes or offsets are out of range");
    if (any({bytes, degree}) && buffer == nullptr) return invalid(call, "a buffer is null");
    return OFFPATH_OK;
}

// The sizes of a rank's edges to itself, in order.
std::vector<std::size_t> own_edges(std::uint32_t rank, std::span<const std::uint32_t> peers,
                                   const size_t* bytes) {
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < peers.size(); ++i)
        if (peers[i] == rank) sizes.push_back(bytes[i]);
    return sizes;
}

}  // namespace

extern "C" {

offpath_status_t offpath_igather(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                 uint32_t root, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_igather", "the root is not in the team");
    if (!multiplies(team->size, bytes)) return invalid("offpath_igather", "the size is out of range");
    const bool is_root = team->rank == root, in_place = send == OFFPATH_IN_PLACE;
    if (in_place && !is_root) return invalid("offpath_igather", "only the root can gather in place");
    if (bytes != 0 && (send == nullptr || (is_root && recv == nullptr)))
        return invalid("offpath_igather", "a buffer is null");
    const auto build = [&] { return collectives::gather(team->shape(), root, bytes, in_place); };
    Starter starter(*team, collectives::gather);
    starter.key(in_place).key(root).key(bytes);
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_igather");
}

offpath_status_t offpath_iscatter(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                  uint32_t root, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_iscatter", "the root is not in the team");
    if (!multiplies(team->size, bytes)) return invalid("offpath_iscatter", "the size is out of range");
    const bool is_root = team->rank == root, in_place = recv == OFFPATH_IN_PLACE;
    if (in_place && !is_root) return invalid("offpath_iscatter", "only the root can scatter in place");
    if (bytes != 0 && (recv == nullptr || (is_root && send == nullptr)))
        return invalid("offpath_iscatter", "a buffer is null");
    const auto build = [&] { return collectives::scatter(team->shape(), root, bytes, in_place); };
    Starter starter(*team, collectives::scatter);
    starter.key(in_place).key(root).key(bytes);
    return is_root ? starter.run({send, recv}, nullptr, request, build)
                   : starter.run({recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_iscatter");
}

offpath_status_t offpath_igatherv(offpath_team_h team, const void* send, size_t send_bytes, void* recv,
                                  const size_t* recv_bytes, const size_t* recv_offsets, uint32_t root,
                                  offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_igatherv", "the root is not in the team");
    const bool in_place = send == OFFPATH_IN_PLACE;
    if (team->rank != root) {
        if (in_place) return invalid("offpath_igatherv", "only the root can gather in place");
        if (send_bytes > max_bytes) return invalid("offpath_igatherv", "the size is out of range");
        if (send_bytes != 0 && send == nullptr) return invalid("offpath_igatherv", "the buffer is null");
        return Starter(*team, collectives::gatherv)
            .key(root)
            .key(send_bytes)
            .run({send}, nullptr, request,
                 [&] { return collectives::gatherv(team->shape(), root, send_bytes, {}, {}, false); });
    }
    if (recv_bytes == nullptr || recv_offsets == nullptr)
        return invalid("offpath_igatherv", "an array is null");
    const std::span<const std::size_t> bytes(recv_bytes, team->size), offsets(recv_offsets, team->size);
    if (!fits(bytes, offsets)) return invalid("offpath_igatherv", "sizes or offsets are out of range");
    if (!in_place && send_bytes != bytes[root])
        return invalid("offpath_igatherv", "the root sends itself another size than it expects");
    if (any(bytes) && (recv == nullptr || (send == nullptr && bytes[root] != 0)))
        return invalid("offpath_igatherv", "a buffer is null");
    const auto build = [&] {
        return collectives::gatherv(team->shape(), root, 0, words(bytes), words(offsets), in_place);
    };
    Starter starter(*team, collectives::gatherv);
    starter.key(root).key(in_place).key(bytes).key(offsets);
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_igatherv");
}

offpath_status_t offpath_iscatterv(offpath_team_h team, const void* send, const size_t* send_bytes,
                                   const size_t* send_offsets, void* recv, size_t recv_bytes, uint32_t root,
                                   offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_iscatterv", "the root is not in the team");
    const bool in_place = recv == OFFPATH_IN_PLACE;
    if (team->rank != root) {
        if (in_place) return invalid("offpath_iscatterv", "only the root can scatter in place");
        if (recv_bytes > max_bytes) return invalid("offpath_iscatterv", "the size is out of range");
        if (recv_bytes != 0 && recv == nullptr) return invalid("offpath_iscatterv", "the buffer is null");
        return Starter(*team, collectives::scatterv)
            .key(root)
            .key(recv_bytes)
            .run({recv}, nullptr, request,
                 [&] { return collectives::scatterv(team->shape(), root, recv_bytes, {}, {}, false); });
    }
    if (send_bytes == nullptr || send_offsets == nullptr)
        return invalid("offpath_iscatterv", "an array is null");
    const std::span<const std::size_t> bytes(send_bytes, team->size), offsets(send_offsets, team->size);
    if (!fits(bytes, offsets)) return invalid("offpath_iscatterv", "sizes or offsets are out of range");
    if (!in_place && recv_bytes != bytes[root])
        return invalid("offpath_iscatterv", "the root sends itself another size than it expects");
    if (any(bytes) && (send == nullptr || (recv == nullptr && bytes[root] != 0)))
        return invalid("offpath_iscatterv", "a buffer is null");
    return Starter(*team, collectives::scatterv)
        .key(root)
        .key(in_place)
        .key(bytes)
        .key(offsets)
        .run({send, recv}, nullptr, request, [&] {
            return collectives::scatterv(team->shape(), root, 0, words(bytes), words(offsets), in_place);
        });
} catch (...) {
    return caught("offpath_iscatterv");
}

offpath_status_t offpath_ineighbor_alltoallv(offpath_team_h team, const void* send, uint32_t outdegree,
                                             const uint32_t* destinations, const size_t* send_bytes,
                                             const size_t* send_offsets, void* recv, uint32_t indegree,
                                             const uint32_t* sources, const size_t* recv_bytes,
                                             const size_t* recv_offsets, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    for (const offpath_status_t status :
         {check_edges(*team, send, outdegree, destinations, send_bytes, send_offsets),
          check_edges(*team, recv, indegree, sources, recv_bytes, recv_offsets)})
        if (status != OFFPATH_OK) return status;
    const std::span<const std::uint32_t> to(destinations, outdegree), from(sources, indegree);
    if (own_edges(team->rank, to, send_bytes) != own_edges(team->rank, from, recv_bytes))
        return invalid("offpath_ineighbor_alltoallv", "a rank's edges to itself do not fit each other");
    const std::vector<std::size_t> to_words(to.begin(), to.end()), from_words(from.begin(), from.end());
    const std::span<const std::size_t> sb(send_bytes, outdegree), so(send_offsets, outdegree);
    const std::span<const std::size_t> rb(recv_bytes, indegree), ro(recv_offsets, indegree);
    return Starter(*team, collectives::neighbor_alltoallv)
        .key(outdegree)
        .key(indegree)
        .key(to_words)
        .key(sb)
        .key(so)
        .key(from_words)
        .key(rb)
        .key(ro)
        .run({send, recv}, nullptr, request, [&] {
            const auto s = words(sb), d = words(so), r = words(rb), e = words(ro);
            return collectives::neighbor_alltoallv(team->shape(), {to, s, d, from, r, e});
        });
} catch (...) {
    return caught("offpath_ineighbor_alltoallv");
}
}
