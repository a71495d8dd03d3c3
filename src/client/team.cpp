#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"

#include <algorithm>

using namespace offpath;
using namespace offpath::client;

namespace {

constexpr std::uint64_t first_reserved_id = std::uint64_t{1} << 63;

void forget_team(offpath_team* team) {
    offpath_context& context = *team->context;
    context.teams.erase(team);
}

}  // namespace

Status offpath::client::create_team(offpath_context& context, std::span<const std::uint32_t> ranks,
                                    std::uint32_t rank, std::uint64_t id, offpath_team** team) {
    constexpr std::size_t most = control::max_part_bytes / sizeof(std::uint32_t);
    for (std::size_t first = 0; first < ranks.size(); first += most) {
        control::CreateTeam command;
        command.team = id;
        command.rank = rank;
        command.size = static_cast<std::uint32_t>(ranks.size());
        command.first = static_cast<std::uint32_t>(first);
        command.ranks = pack(ranks.subspan(first, std::min(most, ranks.size() - first)));
        if (Status status = context.post(command); status != Status::ok) return status;
    }
    context.ring();
    auto made = std::make_unique<offpath_team>();
    made->context = &context;
    made->id = id;
    made->rank = rank;
    made->size = static_cast<std::uint32_t>(ranks.size());
    made->job_ranks.assign(ranks.begin(), ranks.end());
    *team = made.get();
    context.team_ids.insert(id);
    context.teams.emplace(*team, std::move(made));
    return Status::ok;
}

void offpath::client::release_group(offpath_team& team) {
    if (--team.groups == 0 && team.destroyed) forget_team(&team);
}

extern "C" {

offpath_status_t offpath_team_world(offpath_context_h context, offpath_team_h* team) {
    if (context == nullptr || team == nullptr) return OFFPATH_ERR_INVALID;
    *team = context->world;
    return OFFPATH_OK;
}

offpath_status_t offpath_team_create(offpath_context_h context, const uint32_t* ranks, uint32_t size,
                                     uint64_t id, offpath_team_h* team) try {
    if (context == nullptr || ranks == nullptr || team == nullptr) return OFFPATH_ERR_INVALID;
    const std::span<const std::uint32_t> members(ranks, size);
    const auto own = std::find(members.begin(), members.end(), context->rank);
    std::vector<std::uint32_t> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    const char* wrong = nullptr;
    if (size == 0 || sorted.back() >= context->size) {
        wrong = "it is empty or has a rank outside the job";
    } else if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        wrong = "a rank is in it twice";
    } else if (own == members.end()) {
        wrong = "this process is not in it";
    } else if (id >= first_reserved_id) {
        wrong = "ids from 2^63 on are reserved";
    }
    auto guard = context->lock();
    if (wrong == nullptr && context->team_ids.contains(id)) wrong = "a live team has this id";
    if (wrong != nullptr) {
        log::error(Code::arguments, "team {:x} of {} ranks cannot be made: {}", id, size, wrong);
        return OFFPATH_ERR_INVALID;
    }
    return to_c(create_team(*context, members, static_cast<std::uint32_t>(own - members.begin()), id, team));
} catch (...) {
    return caught("offpath_team_create");
}

offpath_status_t offpath_team_destroy(offpath_team_h team) try {
    if (team == nullptr || team->destroyed || team == team->context->world) return OFFPATH_ERR_INVALID;
    offpath_context& context = *team->context;
    auto guard = context.lock();
    if (team->open_windows > 0) {
        log::error(Code::arguments, "team {:x} cannot be destroyed: {} of its windows live", team->id,
                   team->open_windows);
        return OFFPATH_ERR_INVALID;
    }
    context.team_ids.erase(team->id);
    const Status status = context.post(control::DestroyTeam{team->id});
    context.ring();
    team->destroyed = true;
    if (team->groups == 0) forget_team(team);
    // A proxy that is gone has already ended the team.
    return to_c(status == Status::peer_lost ? Status::ok : status);
} catch (...) {
    return caught("offpath_team_destroy");
}

offpath_status_t offpath_team_rank(offpath_team_h team, uint32_t* rank) {
    if (team == nullptr || rank == nullptr) return OFFPATH_ERR_INVALID;
    *rank = team->rank;
    return OFFPATH_OK;
}

offpath_status_t offpath_team_size(offpath_team_h team, uint32_t* size) {
    if (team == nullptr || size == nullptr) return OFFPATH_ERR_INVALID;
    *size = team->size;
    return OFFPATH_OK;
}
}
