#include "engine/teams/tenant.h"

namespace offpath::engine {

bool Core::take_room(Job& job, Team* team, std::size_t payload_bytes) {
    const std::uint64_t bytes = room(payload_bytes);
    if (job.early_bytes + bytes > config.early_bytes) return false;
    job.early_bytes += bytes;
    if (team != nullptr) team->early_bytes += bytes;
    return true;
}

void Core::give_room_back(Job& job, Team* team, std::size_t payload_bytes) {
    const std::uint64_t bytes = room(payload_bytes);
    job.early_bytes -= bytes;
    if (team != nullptr) team->early_bytes -= bytes;
}

}  // namespace offpath::engine
