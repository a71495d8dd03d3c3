// Teams and contexts: numbers of PEs and their translation, configurations, refused arguments, teams made and
// destroyed many times, contexts of teams, several teams in use at once.

#include <vector>

#include "check.h"

namespace {

long cell[4];

void split_strided() {
    const int n = shmem_n_pes(), me = shmem_my_pe();
    for (int stride = -2; stride <= 3; ++stride) {
        if (stride == 0) continue;
        for (int start = 0; start < n; ++start) {
            const int most = stride > 0 ? (n - 1 - start) / stride + 1 : start / -stride + 1;
            for (int size = 1; size <= most; size += 2) {
                shmem_team_t team = SHMEM_TEAM_WORLD;
                SAME(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, nullptr, 0, &team), 0);
                int rank = -1;
                for (int i = 0; i < size; ++i)
                    if (start + i * stride == me) rank = i;
                SAME(team != SHMEM_TEAM_INVALID, rank >= 0);
                SAME(shmem_team_my_pe(team), rank);
                if (rank < 0) continue;
                SAME(shmem_team_n_pes(team), size);
                for (int i = 0; i < size; ++i) {
                    SAME(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD), start + i * stride);
                    SAME(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team), i);
                }
                SAME(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD), -1);
                SAME(shmem_team_translate_pe(team, -1, SHMEM_TEAM_WORLD), -1);
                shmem_team_sync(team);
                shmem_team_destroy(team);
            }
        }
    }
}

void split_2d() {
    const int n = shmem_n_pes(), me = shmem_my_pe();
    for (int width = 1; width <= n + 1; ++width) {
        shmem_team_t x, y;
        SAME(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, nullptr, 0, &x, nullptr, 0, &y), 0);
        const int w = width < n ? width : n;
        SAME(shmem_team_my_pe(x), me % w);
        SAME(shmem_team_my_pe(y), me / w);
        for (int i = 0; i < shmem_team_n_pes(x); ++i)
            SAME(shmem_team_translate_pe(x, i, SHMEM_TEAM_WORLD), me / w * w + i);
        for (int i = 0; i < shmem_team_n_pes(y); ++i)
            SAME(shmem_team_translate_pe(y, i, SHMEM_TEAM_WORLD), me % w + i * w);
        static long mine, sum;
        mine = me;
        long wanted = 0;
        for (int i = 0; i < shmem_team_n_pes(x); ++i)
            wanted += me / w * w + i;
        shmem_long_sum_reduce(x, &sum, &mine, 1);
        SAME(sum, wanted);
        // A team is made from a team.
        shmem_team_t rest;
        const int size = shmem_team_n_pes(y);
        SAME(shmem_team_split_strided(y, size - 1, -1, size, nullptr, 0, &rest), 0);
        SAME(shmem_team_my_pe(rest), size - 1 - me / w);
        shmem_team_destroy(rest);
        shmem_team_destroy(y);
        shmem_team_destroy(x);
    }
}

void configurations() {
    shmem_team_config_t config = {3}, got = {-1};
    shmem_team_t team;
    SAME(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), &config, SHMEM_TEAM_NUM_CONTEXTS,
                                  &team),
         0);
    SAME(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got), 0);
    SAME(got.num_contexts, 3);
    got.num_contexts = -1;
    SAME(shmem_team_get_config(team, 0, &got), 0);
    SAME(got.num_contexts, -1);
    HOLDS(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &got) != 0);
    shmem_team_destroy(team);
}

// Every PE gets the error, even if its own arguments are right.
void refused() {
    const int n = shmem_n_pes();
    shmem_team_t team = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
    HOLDS(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n + 1, nullptr, 0, &team) != 0);
    HOLDS(team == SHMEM_TEAM_INVALID);
    team = SHMEM_TEAM_WORLD;
    const int start = shmem_my_pe() == n - 1 ? -1 : 0;
    HOLDS(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, 1, n, nullptr, 0, &team) != 0);
    HOLDS(team == SHMEM_TEAM_INVALID);
    HOLDS(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, nullptr, 0, &team, nullptr, 0, &other) != 0);
    HOLDS(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
    team = SHMEM_TEAM_WORLD;
    HOLDS(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, nullptr, 0, &team) != 0);
    HOLDS(team == SHMEM_TEAM_INVALID);
    SAME(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    SAME(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    SAME(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID), -1);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    HOLDS(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0);
    HOLDS(ctx == SHMEM_CTX_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    team = SHMEM_TEAM_WORLD;
    HOLDS(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
    HOLDS(team == SHMEM_TEAM_INVALID);
}

// If there are too many teams, all PEs refuse alike. When others have been destroyed, new ones can be made.
void many() {
    for (int round = 0; round < 3; ++round) {
        std::vector<shmem_team_t> teams;
        shmem_team_t team;
        while (teams.size() < 100 &&
               shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &team) == 0)
            teams.push_back(team);
        static long count, least, most;
        count = static_cast<long>(teams.size());
        HOLDS(count > 40);
        shmem_long_min_reduce(SHMEM_TEAM_WORLD, &least, &count, 1);
        shmem_long_max_reduce(SHMEM_TEAM_WORLD, &most, &count, 1);
        SAME(least, most);
        for (const shmem_team_t each : teams) {
            shmem_long_sum_reduce(each, &most, &count, 1);
            SAME(most, count * shmem_n_pes());
            shmem_team_destroy(each);
        }
    }
}

void contexts() {
    const int n = shmem_n_pes(), me = shmem_my_pe();
    shmem_team_t team, of_ctx;
    SAME(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &of_ctx), 0);
    HOLDS(of_ctx == SHMEM_TEAM_WORLD);
    SAME(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, nullptr, 0, &team), 0);
    shmem_ctx_t ctx, plain;
    SAME(shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED, &ctx), 0);
    SAME(shmem_ctx_create(SHMEM_CTX_PRIVATE, &plain), 0);
    SAME(shmem_ctx_get_team(ctx, &of_ctx), 0);
    HOLDS(of_ctx == team);
    SAME(shmem_ctx_get_team(plain, &of_ctx), 0);
    HOLDS(of_ctx == SHMEM_TEAM_WORLD);
    // Sends to the next PE of the team, by the numbers of the reversed team.
    const int to = (shmem_team_my_pe(team) + 1) % n;
    const int to_world = shmem_team_translate_pe(team, to, SHMEM_TEAM_WORLD);
    const int from_world =
        shmem_team_translate_pe(team, (shmem_team_my_pe(team) + n - 1) % n, SHMEM_TEAM_WORLD);
    for (long& word : cell)
        word = -1;
    shmem_barrier_all();
    shmem_ctx_long_p(ctx, &cell[0], me, to);
    shmem_ctx_long_atomic_set(ctx, &cell[1], me + 100, to);
    shmem_ctx_quiet(ctx);
    shmem_ctx_long_p(plain, &cell[2], me + 200, to_world);
    shmem_ctx_quiet(plain);
    shmem_barrier_all();
    SAME(cell[0], from_world);
    SAME(cell[1], from_world + 100);
    SAME(cell[2], from_world + 200);
    SAME(shmem_ctx_long_g(ctx, &cell[0], to), me);
    SAME(shmem_ctx_long_atomic_fetch(ctx, &cell[1], to), me + 100);
    shmem_barrier_all();
    shmem_ctx_destroy(ctx);
    shmem_ctx_destroy(plain);
    shmem_team_destroy(team);
}

void shared() {
    for (int i = 0; i < shmem_team_n_pes(SHMEM_TEAM_SHARED); ++i)
        HOLDS(shmem_ptr(cell, shmem_team_translate_pe(SHMEM_TEAM_SHARED, i, SHMEM_TEAM_WORLD)) != nullptr);
    SAME(shmem_team_my_pe(SHMEM_TEAM_WORLD), shmem_my_pe());
    SAME(shmem_team_n_pes(SHMEM_TEAM_WORLD), shmem_n_pes());
}

}  // namespace

int main() {
    shmem_init();
    split_strided();
    split_2d();
    configurations();
    refused();
    many();
    contexts();
    shared();
    return check::verdict();
}
