// The calls of shmem.h on teams and contexts.

#include <shmem.h>

#include <fmt/format.h>

#include "calls/definition.h"
#include "core.h"
#include "teams/team.h"

namespace offpath::shmem {

namespace {

shmem_team_t handle_of(const Team& team) {
    return reinterpret_cast<shmem_team_t>(team.handle);
}

struct Configuration {
    bool good = true;
    int contexts = 0;
};

Configuration read(const shmem_team_config_t* config, long mask) {
    Configuration read;
    if ((mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0) {
        complain(fmt::format("the mask {:#x} names more than SHMEM_TEAM_NUM_CONTEXTS", mask));
        read.good = false;
    } else if (mask != 0 && (config == nullptr || config->num_contexts < 0)) {
        complain(config == nullptr ? "the mask is not 0, but there is no configuration"
                                   : fmt::format("num_contexts {} is below 0", config->num_contexts));
        read.good = false;
    } else if (mask != 0) {
        read.contexts = config->num_contexts;
    }
    return read;
}

int finish(bool done, const Team* made, shmem_team_t* result) {
    if (result != nullptr) *result = done && made != nullptr ? handle_of(*made) : SHMEM_TEAM_INVALID;
    return done ? 0 : -1;
}

int split_strided(shmem_team_t handle, int start, int stride, int size, const shmem_team_config_t* config,
                  long mask, shmem_team_t* result) {
    Team* parent = find_team(handle);
    if (parent == nullptr) return finish(false, nullptr, result);
    const long last = start + static_cast<long>(stride) * (size - 1);
    const auto inside = [&](long rank) { return rank >= 0 && rank < parent->size; };
    Configuration configuration = read(config, mask);
    if (size < 1 || (stride == 0 && size != 1) || !inside(start) || !inside(last)) {
        complain(fmt::format("start {}, stride {}, size {} name PEs that a team of {} does not have", start,
                             stride, size, parent->size));
        configuration.good = false;
    }
    std::vector<int> members;
    bool member = false;
    for (int i = 0; configuration.good && i < size; ++i) {
        members.push_back(start + i * stride);
        member = member || members.back() == parent->rank;
    }
    if (!member) members.clear();
    Team* made = nullptr;
    const bool done = split(*parent, members, configuration.good, configuration.contexts, made);
    return finish(done, made, result);
}

int split_2d(shmem_team_t handle, int xrange, const shmem_team_config_t* x_config, long x_mask,
             shmem_team_t* x_result, const shmem_team_config_t* y_config, long y_mask,
             shmem_team_t* y_result) {
    finish(false, nullptr, x_result);
    finish(false, nullptr, y_result);
    Team* parent = find_team(handle);
    if (parent == nullptr) return -1;
    Configuration x = read(x_config, x_mask);
    const Configuration y = read(y_config, y_mask);
    if (xrange < 1) {
        complain(fmt::format("xrange {} is below 1", xrange));
        x.good = false;
    }
    const int width = std::min(std::max(xrange, 1), parent->size);
    std::vector<int> row, column;
    for (int rank = 0; rank < parent->size; ++rank) {
        if (rank / width == parent->rank / width) row.push_back(rank);
        if (rank % width == parent->rank % width) column.push_back(rank);
    }
    Team *along_x = nullptr, *along_y = nullptr;
    if (!split(*parent, row, x.good && y.good, x.contexts, along_x)) return -1;
    if (!split(*parent, column, true, y.contexts, along_y)) {
        destroy(*along_x);
        return -1;
    }
    finish(true, along_x, x_result);
    return finish(true, along_y, y_result);
}

int create_ctx(const Team& team, long options, shmem_ctx_t* ctx) {
    std::vector<int> pes;
    if (&team != &world_team()) pes = team.pes;
    Context* made = create_context(options, std::move(pes), handle_of(team));
    *ctx = made == nullptr ? SHMEM_CTX_INVALID : reinterpret_cast<shmem_ctx_t>(made);
    return made == nullptr ? -1 : 0;
}

}  // namespace

}  // namespace offpath::shmem

using namespace offpath::shmem;

DEFINE(int, shmem_team_my_pe, (shmem_team_t team)) {
    const Team* found = find_team(team);
    return found == nullptr ? -1 : found->rank;
}

DEFINE(int, shmem_team_n_pes, (shmem_team_t team)) {
    const Team* found = find_team(team);
    return found == nullptr ? -1 : found->size;
}

DEFINE(int, shmem_team_get_config, (shmem_team_t team, long mask, shmem_team_config_t* config)) {
    const Team* found = find_team(team);
    if (found == nullptr) return -1;
    if (mask == 0) return 0;
    if ((mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0 || config == nullptr) return -1;
    config->num_contexts = found->contexts;
    return 0;
}

DEFINE(int, shmem_team_translate_pe, (shmem_team_t source, int pe, shmem_team_t dest)) {
    const Team* from = find_team(source);
    const Team* to = find_team(dest);
    if (from == nullptr || to == nullptr || pe < 0 || pe >= from->size) return -1;
    return to->rank_of(from->pes[static_cast<std::size_t>(pe)]);
}

DEFINE(int, shmem_team_split_strided,
       (shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t* config, long mask,
        shmem_team_t* team)) {
    return split_strided(parent, start, stride, size, config, mask, team);
}

DEFINE(int, shmem_team_split_2d,
       (shmem_team_t parent, int xrange, const shmem_team_config_t* x_config, long x_mask,
        shmem_team_t* x_team, const shmem_team_config_t* y_config, long y_mask, shmem_team_t* y_team)) {
    return split_2d(parent, xrange, x_config, x_mask, x_team, y_config, y_mask, y_team);
}

DEFINE(void, shmem_team_destroy, (shmem_team_t team)) {
    if (Team* found = find_team(team)) destroy(*found);
}

DEFINE(int, shmem_ctx_create, (long options, shmem_ctx_t* ctx)) {
    return create_ctx(world_team(), options, ctx);
}

DEFINE(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx)) {
    *ctx = SHMEM_CTX_INVALID;
    const Team* found = find_team(team);
    return found == nullptr ? -1 : create_ctx(*found, options, ctx);
}

DEFINE(void, shmem_ctx_destroy, (shmem_ctx_t ctx)) {
    if (ctx == SHMEM_CTX_INVALID) return;
    if (ctx == SHMEM_CTX_DEFAULT) fail("the default context stays");
    destroy_context(&context_of(ctx));
}

DEFINE(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team)) {
    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID) return -1;
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : static_cast<shmem_team_t>(context_of(ctx).team);
    return 0;
}
