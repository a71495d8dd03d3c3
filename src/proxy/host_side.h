// HostSide: a proxy's connections to hosts that have their own operating system. It has the link to them and,
// where UCX and the network card support it, access to their exported memory (back end xgvmi). Ownership: the
// proxy; sessions borrow it and end first. Threads: the proxy's.
#pragma once

#include "link/device_links.h"
#include "transport/ucx/exported_memory.h"

#include <memory>

namespace offpath::proxy {

struct HostSide {
    std::unique_ptr<link::DeviceLinks> links;         // null: no remote clients
    std::unique_ptr<transport::DeviceMemory> memory;  // null: no xgvmi here

    unsigned progress() {
        unsigned work = links != nullptr ? links->progress() : 0;
        if (memory != nullptr) work += memory->progress();
        return work;
    }
    // For sleeping, as in Transport.
    Status arm() {
        if (links != nullptr && links->arm() != Status::ok) return Status::retry;
        return memory != nullptr ? memory->arm() : Status::ok;
    }
};

}  // namespace offpath::proxy
