#include "teams/team.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "collectives/collectives.h"
#include "teams/slots.h"
#include "waiting.h"

namespace offpath::shmem {

SlotLayout slot_layout;

namespace {

constexpr std::uint64_t world_handle = 1, shared_handle = 2;

struct Teams {
    std::vector<int> node_of;  // for each world PE: the lowest PE of its node
    std::unique_ptr<Team> world, shared;
    // Destroyed teams remain here, marked, so that a stale handle is detected.
    std::vector<std::unique_ptr<Team>> all;
    std::mutex mutex;
};
Teams teams;

// Every PE tells every other PE the lowest PE of its node.
void learn_nodes() {
    const auto n = static_cast<std::size_t>(n_pes());
    auto* table = static_cast<std::uint64_t*>(internal_alloc(n * sizeof(std::uint64_t)));
    std::uint64_t lowest = 1;
    for (int pe = 0; pe < my_pe() && pointer(table, pe) == nullptr; ++pe)
        ++lowest;
    Context* const context = create_context(0, {}, nullptr, true);
    if (context == nullptr) fail("no memory for a context");
    for (int pe = 0; pe < n_pes(); ++pe)
        put(*context, table + my_pe(), &lowest, sizeof lowest, pe, false);
    for (std::size_t pe = 0; pe < n; ++pe)
        teams.node_of.push_back(
            static_cast<int>(wait_until(table + pe, compare_not_equal, std::uint64_t{0})) - 1);
    destroy_context(context);
}

void find_groups(Team& team) {
    const auto n = static_cast<std::size_t>(team.size);
    team.group_of.resize(n);
    team.place_of.resize(n);
    std::vector<int> nodes;
    for (std::size_t rank = 0; rank < n; ++rank) {
        const int node = teams.node_of[static_cast<std::size_t>(team.pes[rank])];
        const auto at = std::find(nodes.begin(), nodes.end(), node);
        const auto group = static_cast<std::size_t>(at - nodes.begin());
        if (at == nodes.end()) {
            nodes.push_back(node);
            team.groups.emplace_back();
        }
        team.group_of[rank] = static_cast<int>(group);
        team.place_of[rank] = static_cast<int>(team.groups[group].size());
        team.groups[group].push_back(static_cast<int>(rank));
    }
}

std::unique_ptr<Team> make(std::vector<int> pes, int slot, int contexts) {
    auto team = std::make_unique<Team>();
    team->pes = std::move(pes);
    team->size = static_cast<int>(team->pes.size());
    team->rank = team->rank_of(my_pe());
    team->contexts = contexts;
    team->slot = slot;
    team->handle = reinterpret_cast<std::uintptr_t>(team.get());
    find_groups(*team);
    team->context = create_context(0, team->pes, nullptr, true);
    if (team->context == nullptr) fail("no memory for a team");
    if (slot >= 0) {
        team->own = slot_at(slot);
        for (const int rank : team->mine()) {
            const int pe = team->pes[static_cast<std::size_t>(rank)];
            void* seen = rank == team->rank ? team->own.base : pointer(team->own.base, pe);
            team->near.push_back(Slot{static_cast<std::byte*>(seen)});
        }
    }
    return team;
}

// What PEs exchange when they make a team: the slots that they use, and whether something is wrong.
struct Agreement {
    SlotSet used{};
    std::uint64_t bad = 0;
};

void agree(Team& parent, Agreement& agreement) {
    combine_small(parent, &agreement, &agreement, sizeof agreement / sizeof(std::uint64_t),
                  reducer<unsigned long>(Reduction::or_));
}

}  // namespace

int Team::rank_of(int pe) const {
    const auto at = std::find(pes.begin(), pes.end(), pe);
    return at == pes.end() ? -1 : static_cast<int>(at - pes.begin());
}

void open_teams() {
    slot_layout.pes = static_cast<std::size_t>(n_pes());
    learn_nodes();
    std::vector<int> everyone, near;
    for (int pe = 0; pe < n_pes(); ++pe) {
        everyone.push_back(pe);
        if (teams.node_of[static_cast<std::size_t>(pe)] == teams.node_of[static_cast<std::size_t>(my_pe())])
            near.push_back(pe);
    }
    Waiter::share_cores(static_cast<long>(near.size()) >= sysconf(_SC_NPROCESSORS_ONLN));
    open_slots();
    teams.world = make(everyone, 0, 0);
    teams.world->handle = world_handle;
    teams.shared = make(near, 1, 0);
    teams.shared->handle = shared_handle;
    take_slot(0);
    take_slot(1);
}

void close_teams() {
    for (const std::unique_ptr<Team>& team : teams.all)
        if (team->context != nullptr) destroy_context(team->context);
    teams.all.clear();
    for (std::unique_ptr<Team>* team : {&teams.world, &teams.shared}) {
        if (*team != nullptr) destroy_context((*team)->context);
        team->reset();
    }
}

Team& world_team() {
    if (teams.world == nullptr) [[unlikely]]
        quiet(default_context());  // ends the job and writes why
    return *teams.world;
}

Team& shared_team() {
    if (teams.shared == nullptr) [[unlikely]]
        quiet(default_context());
    return *teams.shared;
}

Team* find_team(void* handle) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    if (value == 0) return nullptr;
    if (value == world_handle) return &world_team();
    if (value == shared_handle) return &shared_team();
    auto* team = static_cast<Team*>(handle);
    if (team->mark != Team::alive_mark) fail("the team was destroyed before");
    return team;
}

Team& team_of(void* handle) {
    Team* team = find_team(handle);
    if (team == nullptr) fail("the team is SHMEM_TEAM_INVALID");
    return *team;
}

bool split(Team& parent, const std::vector<int>& members, bool good, int contexts, Team*& made) {
    made = nullptr;
    const bool member = members.size() > 1;  // a team of one needs no slot
    int slot = -1;
    // Another thread may take the slot meanwhile, on some of the PEs.
    for (bool settled = false; !settled;) {
        Agreement wish{slots_in_use(), good ? 0u : 1u};
        agree(parent, wish);
        slot = lowest_free(wish.used);
        if (wish.bad != 0 || slot < 0) return false;
        Agreement outcome;
        outcome.bad = member && !take_slot(slot) ? 1 : 0;
        const bool taken = member && outcome.bad == 0;
        agree(parent, outcome);
        settled = outcome.bad == 0;
        if (!settled && taken) free_slot(slot);
    }
    if (members.empty()) return true;
    std::vector<int> pes;
    for (const int rank : members)
        pes.push_back(parent.pes[static_cast<std::size_t>(rank)]);
    std::unique_ptr<Team> team = make(std::move(pes), member ? slot : -1, contexts);
    made = team.get();
    const std::lock_guard lock(teams.mutex);
    teams.all.push_back(std::move(team));
    return true;
}

void destroy(Team& team) {
    if (team.handle == world_handle || team.handle == shared_handle) fail("the teams of the library stay");
    quiet(*team.context);
    // No member reads or writes this slot afterwards: a sync announces its end in each member's own slot.
    sync_team(team);
    destroy_context(team.context);
    team.context = nullptr;
    if (team.slot >= 0) free_slot(team.slot);
    team.mark = 0;
    for (std::vector<int>* list : {&team.pes, &team.group_of, &team.place_of})
        std::vector<int>().swap(*list);
    team.groups.clear();
}

Team* keep_active_set(std::vector<int> pes, int slot) {
    std::unique_ptr<Team> team = make(std::move(pes), slot, 0);
    Team* kept = team.get();
    const std::lock_guard lock(teams.mutex);
    teams.all.push_back(std::move(team));
    return kept;
}

}  // namespace offpath::shmem
