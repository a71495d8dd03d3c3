// The collectives of the C API: each call checks its arguments, looks the schedule up and starts it.
#include "client/starter.h"
#include "collectives/patterns/equal_blocks.h"
#include "collectives/selection.h"

using namespace offpath;
using namespace offpath::client;

extern "C" {

offpath_status_t offpath_ialltoall(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                   offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (!multiplies(team->size, bytes)) return invalid("offpath_ialltoall", "the size is out of range");
    if (bytes != 0 && (send == nullptr || recv == nullptr))
        return invalid("offpath_ialltoall", "a buffer is null");
    std::unique_ptr<std::byte[]> owned;
    if (send == OFFPATH_IN_PLACE) {
        owned = copy_of(recv, team->size * bytes);
        send = owned.get();
    }
    return Starter(*team, collectives::alltoall).key(bytes).run({send, recv}, std::move(owned), request, [&] {
        return collectives::alltoall(team->shape(), bytes);
    });
} catch (...) {
    return caught("offpath_ialltoall");
}

offpath_status_t offpath_ialltoallv(offpath_team_h team, const void* send, const size_t* send_bytes,
                                    const size_t* send_offsets, void* recv, const size_t* recv_bytes,
                                    const size_t* recv_offsets, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    const bool in_place = send == OFFPATH_IN_PLACE;
    if (recv_bytes == nullptr || recv_offsets == nullptr ||
        (!in_place && (send_bytes == nullptr || send_offsets == nullptr)))
        return invalid("offpath_ialltoallv", "an array is null");
    const std::span<const std::size_t> rb(recv_bytes, team->size), ro(recv_offsets, team->size);
    const std::span<const std::size_t> sb(in_place ? recv_bytes : send_bytes, team->size);
    const std::span<const std::size_t> so(in_place ? recv_offsets : send_offsets, team->size);
    if (!fits(sb, so) || !fits(rb, ro))
        return invalid("offpath_ialltoallv", "sizes or offsets are out of range");
    if ((any(sb) && send == nullptr) || (any(rb) && recv == nullptr))
        return invalid("offpath_ialltoallv", "a buffer is null");
    std::unique_ptr<std::byte[]> owned;
    if (in_place) {
        owned = copy_of(recv, extent(rb, ro));
        send = owned.get();
    }
    return Starter(*team, collectives::alltoallv)
        .key(sb)
        .key(so)
        .key(rb)
        .key(ro)
        .run({send, recv}, std::move(owned), request, [&] {
            const auto s = words(sb), d = words(so), r = words(rb), e = words(ro);
            return collectives::alltoallv(team->shape(), {s, d, r, e});
        });
} catch (...) {
    return caught("offpath_ialltoallv");
}

offpath_status_t offpath_iallgather(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                    offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (!multiplies(team->size, bytes)) return invalid("offpath_iallgather", "the size is out of range");
    if (bytes != 0 && (send == nullptr || recv == nullptr))
        return invalid("offpath_iallgather", "a buffer is null");
    const bool in_place = send == OFFPATH_IN_PLACE;
    const auto build = [&] {
        const collectives::EqualBlocks blocks(team->size, bytes);
        return collectives::allgatherv(team->shape(), blocks.bytes, blocks.offsets, in_place);
    };
    Starter starter(*team, collectives::allgatherv);
    starter.key(in_place).key(bytes);
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_iallgather");
}

offpath_status_t offpath_iallgatherv(offpath_team_h team, const void* send, void* recv,
                                     const size_t* recv_bytes, const size_t* recv_offsets,
                                     offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (recv_bytes == nullptr || recv_offsets == nullptr)
        return invalid("offpath_iallgatherv", "an array is null");
    const std::span<const std::size_t> bytes(recv_bytes, team->size), offsets(recv_offsets, team->size);
    if (!fits(bytes, offsets)) return invalid("offpath_iallgatherv", "sizes or offsets are out of range");
    if (any(bytes) && (recv == nullptr || (send == nullptr && bytes[team->rank] != 0)))
        return invalid("offpath_iallgatherv", "a buffer is null");
    const bool in_place = send == OFFPATH_IN_PLACE;
    const auto build = [&] {
        return collectives::allgatherv(team->shape(), words(bytes), words(offsets), in_place);
    };
    Starter starter(*team, collectives::allgatherv);
    starter.key(in_place).key(bytes).key(offsets);
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_iallgatherv");
}

offpath_status_t offpath_ibcast(offpath_team_h team, void* buffer, size_t bytes, uint32_t root,
                                offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_ibcast", "the root is not in the team");
    if (bytes > max_bytes) return invalid("offpath_ibcast", "the size is out of range");
    if (bytes != 0 && buffer == nullptr) return invalid("offpath_ibcast", "the buffer is null");
    return Starter(*team, collectives::bcast).key(root).key(bytes).run({buffer}, nullptr, request, [&] {
        return collectives::bcast(team->shape(), root, bytes);
    });
} catch (...) {
    return caught("offpath_ibcast");
}

offpath_status_t offpath_ibarrier(offpath_team_h team, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    return Starter(*team, collectives::barrier).run({}, nullptr, request, [&] {
        return collectives::barrier(team->shape());
    });
} catch (...) {
    return caught("offpath_ibarrier");
}
}
