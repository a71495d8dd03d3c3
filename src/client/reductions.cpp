// The reductions of the C API: each call checks its arguments, looks the schedule up and starts it.
#include "client/starter.h"
#include "collectives/selection.h"

using namespace offpath;
using namespace offpath::client;

namespace {

collectives::Reducing reducing(offpath_type_t type, offpath_reduction_t reduction) {
    return {static_cast<schedule::DataType>(type), static_cast<schedule::Reduction>(reduction)};
}

bool supported(const offpath_context& context, collectives::Reducing what) {
    return schedule::defined(what.type, what.reduction) &&
           (context.all_local || !schedule::is_long_double(what.type));
}

// The checks of the arguments that all reductions share.
offpath_status_t check(const char* call, offpath_team_h team, const void* send, const void* recv,
                       std::size_t count, collectives::Reducing what) {
    if (!supported(*team->context, what)) return OFFPATH_ERR_UNSUPPORTED;
    if (!multiplies(schedule::size_of(what.type), count)) return invalid(call, "the size is out of range");
    if (count != 0 && (send == nullptr || recv == nullptr)) return invalid(call, "a buffer is null");
    return OFFPATH_OK;
}

// Serves calls that have a send buffer, a receive buffer, and nothing else that differs between ranks.
template <typename Builder, typename Build>
offpath_status_t start(offpath_team& team, Builder* builder, const void* send, void* recv,
                       std::uint64_t detail, std::uint64_t bytes, collectives::Reducing what,
                       offpath_request_h* request, Build&& build) {
    const bool in_place = send == OFFPATH_IN_PLACE;
    Starter starter(team, builder);
    starter.key(in_place)
        .key(detail)
        .key(bytes)
        .key(static_cast<std::uint64_t>(what.type))
        .key(static_cast<std::uint64_t>(what.reduction));
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
}

offpath_status_t reduce_scatter(const char* call, offpath_team& team, const void* send, void* recv,
                                std::span<const std::size_t> counts, collectives::Reducing what,
                                offpath_request_h* request) {
    if (!supported(*team.context, what)) return OFFPATH_ERR_UNSUPPORTED;
    const std::uint64_t element = schedule::size_of(what.type);
    std::vector<std::uint64_t> bytes(team.size);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (!multiplies(element, counts[i]) || element * counts[i] > max_bytes - total)
            return invalid(call, "the size is out of range");
        bytes[i] = element * counts[i];
        total += bytes[i];
    }
    if ((total != 0 && send == nullptr) || (bytes[team.rank] != 0 && recv == nullptr))
        return invalid(call, "a buffer is null");
    // In place, results would overwrite operands that are still needed.
    std::unique_ptr<std::byte[]> owned;
    if (send == OFFPATH_IN_PLACE) {
        owned = copy_of(recv, total);
        send = owned.get();
    }
    return Starter(team, collectives::reduce_scatter)
        .key(counts)
        .key(static_cast<std::uint64_t>(what.type))
        .key(static_cast<std::uint64_t>(what.reduction))
        .run({send, recv}, std::move(owned), request,
             [&] { return collectives::reduce_scatter(team.shape(), bytes, what); });
}

offpath_status_t scan(const char* call, offpath_team_h team, const void* send, void* recv, std::size_t count,
                      collectives::Reducing what, bool exclusive, offpath_request_h* request) {
    if (const offpath_status_t status = check(call, team, send, recv, count, what); status != OFFPATH_OK)
        return status;
    const std::uint64_t bytes = count * schedule::size_of(what.type);
    return start(*team, collectives::scan, send, recv, exclusive, bytes, what, request, [&] {
        return collectives::scan(team->shape(), bytes, what, send == OFFPATH_IN_PLACE, exclusive);
    });
}

}  // namespace

extern "C" {

size_t offpath_type_bytes(offpath_type_t type) {
    return schedule::size_of(static_cast<schedule::DataType>(type));
}

offpath_status_t offpath_reduction_supported(offpath_context_h context, offpath_type_t type,
                                             offpath_reduction_t reduction) {
    if (context == nullptr) return OFFPATH_ERR_INVALID;
    return supported(*context, reducing(type, reduction)) ? OFFPATH_OK : OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_iallreduce(offpath_team_h team, const void* send, void* recv, size_t count,
                                    offpath_type_t type, offpath_reduction_t reduction,
                                    offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    const collectives::Reducing what = reducing(type, reduction);
    if (const offpath_status_t status = check("offpath_iallreduce", team, send, recv, count, what);
        status != OFFPATH_OK)
        return status;
    const std::uint64_t bytes = count * schedule::size_of(what.type);
    return start(*team, collectives::allreduce, send, recv, 0, bytes, what, request, [&] {
        return collectives::allreduce(team->shape(), bytes, what, send == OFFPATH_IN_PLACE);
    });
} catch (...) {
    return caught("offpath_iallreduce");
}

offpath_status_t offpath_ireduce(offpath_team_h team, const void* send, void* recv, size_t count,
                                 offpath_type_t type, offpath_reduction_t reduction, uint32_t root,
                                 offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_ireduce", "the root is not in the team");
    const bool is_root = team->rank == root, in_place = send == OFFPATH_IN_PLACE;
    if (in_place && !is_root) return invalid("offpath_ireduce", "only the root can reduce in place");
    const collectives::Reducing what = reducing(type, reduction);
    if (const offpath_status_t status =
            check("offpath_ireduce", team, send, is_root ? recv : send, count, what);
        status != OFFPATH_OK)
        return status;
    const std::uint64_t bytes = count * schedule::size_of(what.type);
    return start(*team, collectives::reduce, send, recv, root, bytes, what, request,
                 [&] { return collectives::reduce(team->shape(), root, bytes, what, in_place); });
} catch (...) {
    return caught("offpath_ireduce");
}

offpath_status_t offpath_ireduce_scatter(offpath_team_h team, const void* send, void* recv,
                                         const size_t* counts, offpath_type_t type,
                                         offpath_reduction_t reduction, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (counts == nullptr) return invalid("offpath_ireduce_scatter", "the array is null");
    return reduce_scatter("offpath_ireduce_scatter", *team, send, recv, {counts, team->size},
                          reducing(type, reduction), request);
} catch (...) {
    return caught("offpath_ireduce_scatter");
}

offpath_status_t offpath_ireduce_scatter_block(offpath_team_h team, const void* send, void* recv,
                                               size_t count, offpath_type_t type,
                                               offpath_reduction_t reduction,
                                               offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    const std::vector<std::size_t> counts(team->size, count);
    return reduce_scatter("offpath_ireduce_scatter_block", *team, send, recv, counts,
                          reducing(type, reduction), request);
} catch (...) {
    return caught("offpath_ireduce_scatter_block");
}

offpath_status_t offpath_iscan(offpath_team_h team, const void* send, void* recv, size_t count,
                               offpath_type_t type, offpath_reduction_t reduction,
                               offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    return scan("offpath_iscan", team, send, recv, count, reducing(type, reduction), false, request);
} catch (...) {
    return caught("offpath_iscan");
}

offpath_status_t offpath_iexscan(offpath_team_h team, const void* send, void* recv, size_t count,
                                 offpath_type_t type, offpath_reduction_t reduction,
                                 offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    return scan("offpath_iexscan", team, send, recv, count, reducing(type, reduction), true, request);
} catch (...) {
    return caught("offpath_iexscan");
}
}
