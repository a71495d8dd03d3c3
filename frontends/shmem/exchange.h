// An exchange of small values between all PEs, through their devices. Collective.
#pragma once

#include "device.h"

#include <type_traits>
#include <vector>

namespace offpath::shmem {

template <typename Value>
std::vector<Value> gather(const Value& mine) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::vector<Value> all(static_cast<std::size_t>(world.pes));
    offpath_request_h request = nullptr;
    must(offpath_iallgather(world.team, &mine, all.data(), sizeof mine, &request),
         "an exchange between the PEs");
    finish(request, "an exchange between the PEs");
    return all;
}

}  // namespace offpath::shmem
