#include "device_loss.h"

#include "world.h"

#include <offpath/loss.h>

#include <algorithm>

namespace offpath::shmem {

bool all_pes_are_near() {
    return std::ranges::all_of(world.peers, [](const Peer& peer) {
        for (std::size_t id = 0; id < segment_count; ++id)
            if (world.segments[id].bytes > 0 && peer.segments[id].mapped == nullptr) return false;
        return true;
    });
}

bool goes_on_after(offpath_status_t status) {
    if (is_without_device()) return true;
    if (status != OFFPATH_ERR_PEER_LOST || !all_pes_are_near() ||
        offpath_context_device_state(world.context) != OFFPATH_DEVICE_ENDED)
        return false;
    device_is_lost.store(true, std::memory_order_relaxed);
    return true;
}

}  // namespace offpath::shmem
