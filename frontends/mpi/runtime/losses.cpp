#include "losses.h"

#include <mutex>
#include <unordered_set>

#include "runtime.h"

namespace offpath::mpi {
namespace {

std::mutex losses_mutex;
std::unordered_set<int> lost_nodes;  // node numbers as in runtime().node_of
std::unordered_set<const Team*> teams_with_losses;
bool own_device_is_lost = false;

int node_of(int world_rank) {
    return runtime().node_of[static_cast<std::size_t>(world_rank)];
}

}  // namespace

void lost_rank(int world_rank) {
    const std::lock_guard lock(losses_mutex);
    lost_nodes.insert(node_of(world_rank));
    any_loss.store(true, std::memory_order_relaxed);
}

void lost_own_device() {
    const std::lock_guard lock(losses_mutex);
    own_device_is_lost = true;
    any_loss.store(true, std::memory_order_relaxed);
}

void lost_on_team(const Team& team, offpath_status_t status) {
    if (status != OFFPATH_ERR_PEER_LOST) return;
    const std::lock_guard lock(losses_mutex);
    teams_with_losses.insert(&team);
    any_loss.store(true, std::memory_order_relaxed);
}

bool is_lost(int world_rank) {
    if (!any_loss.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(losses_mutex);
    return own_device_is_lost || lost_nodes.contains(node_of(world_rank));
}

bool met_loss(const Team& team) {
    if (!any_loss.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(losses_mutex);
    return own_device_is_lost || teams_with_losses.contains(&team);
}

std::span<const Counter> loss_counters() {
    static const Counter lost{"devices_lost", "devices whose loss this rank knows of", Unit::events, [] {
                                  const std::lock_guard lock(losses_mutex);
                                  const bool own =
                                      own_device_is_lost && !lost_nodes.contains(node_of(runtime().rank));
                                  return std::uint64_t{lost_nodes.size()} + (own ? 1 : 0);
                              }};
    return {&lost, 1};
}

void forget_losses(const Team& team) {
    if (!any_loss.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(losses_mutex);
    teams_with_losses.erase(&team);
}

}  // namespace offpath::mpi
