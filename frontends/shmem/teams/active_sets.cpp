// Active sets: teams without a call that makes them. At the first use of a set, its members agree on a slot
// through pSync; from then on they know the team. All of pSync is SHMEM_SYNC_VALUE before and after. In
// between it has:
//   at the first member:  [0], [1] slots in use at any member, [2] how many members have reported theirs
//   at the others:        [3] the slot, plus 1; -1: none is left

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <tuple>

#include "core.h"
#include "teams/slots.h"
#include "teams/team.h"
#include "waiting.h"
#include "world.h"

namespace offpath::shmem {

namespace {

constexpr long no_slot = -1;

struct ActiveSets {
    std::map<std::tuple<int, int, int>, Team*> known;
    std::mutex mutex;
};
ActiveSets sets;

[[noreturn]] void fail_full() {
    fail(fmt::format("more than {} different active sets", slot_count - first_active_set_slot));
}

// The standard does not define a call by a PE outside the set. Such a call fails if checks are on; otherwise
// it does nothing.
Team& nobody(int start, int log_stride, int size) {
    if (world.checks)
        fail(fmt::format("the active set of PE_start {}, logPE_stride {}, PE_size {} is without this PE",
                         start, log_stride, size));
    static Team team;
    team.rank = -1;
    return team;
}

void set_at(long* word, long value, int pe) {
    amo(default_context(), Amo::set, sizeof value, word, static_cast<std::uint64_t>(value), 0, nullptr, pe,
        false);
}

int decide(const std::vector<int>& pes, long* sync) {
    wait_until(sync + 2, compare_equal, static_cast<long>(pes.size()) - 1);
    SlotSet used = slots_in_use();
    used[0] |= static_cast<std::uint64_t>(load(sync));
    used[1] |= static_cast<std::uint64_t>(load(sync + 1));
    const int slot = lowest_free_for_active_set(used);
    sync[0] = sync[1] = sync[2] = 0;
    for (std::size_t i = 1; i < pes.size(); ++i)
        set_at(sync + 3, slot < 0 ? no_slot : slot + 1, pes[i]);
    return slot;
}

int follow(int first, long* sync) {
    const SlotSet used = slots_in_use();
    Context& context = default_context();
    for (int i = 0; i < 2; ++i)
        amo(context, Amo::or_, sizeof(long), sync + i, used[static_cast<std::size_t>(i)], 0, nullptr, first,
            false);
    fence(context);
    amo(context, Amo::add, sizeof(long), sync + 2, 1, 0, nullptr, first, false);
    const long answer = wait_until(sync + 3, compare_not_equal, 0L);
    sync[3] = 0;
    return answer == no_slot ? -1 : static_cast<int>(answer) - 1;
}

}  // namespace

Team& active_set(int start, int log_stride, int size, long* sync) {
    if (start == 0 && log_stride == 0 && size == n_pes()) return world_team();
    const bool last_fits = start >= 0 && size >= 1 && log_stride >= 0 && log_stride < 31 &&
                           start + (static_cast<long>(size - 1) << log_stride) < n_pes();
    if (!last_fits)
        fail(fmt::format("PE_start {}, logPE_stride {}, PE_size {} name PEs that are not among 0 to {}",
                         start, log_stride, size, n_pes() - 1));
    const std::lock_guard lock(sets.mutex);
    const std::tuple name{start, log_stride, size};
    if (const auto known = sets.known.find(name); known != sets.known.end()) return *known->second;
    std::vector<int> pes;
    int rank = -1;
    for (int i = 0; i < size; ++i) {
        pes.push_back(start + (i << log_stride));
        if (pes.back() == my_pe()) rank = i;
    }
    if (rank < 0) return nobody(start, log_stride, size);
    int slot = -1;
    if (size > 1) {
        slot = rank == 0 ? decide(pes, sync) : follow(pes[0], sync);
        if (slot < 0) fail_full();
        take_slot(slot);
    }
    Team* team = keep_active_set(std::move(pes), slot);
    sets.known[name] = team;
    return *team;
}

}  // namespace offpath::shmem
