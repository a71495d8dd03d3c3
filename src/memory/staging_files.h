// The descriptors of a staging area, as the proxy makes them and hands them to the client over their socket,
// in this order.
#pragma once

#include "memory/file.h"

namespace offpath::memory {

struct StagingFiles {
    File area;  // memory file: rings and slots (staging_area.h)
    File wake;  // eventfd: the proxy wakes the client's agent
    File done;  // eventfd: the agent wakes the proxy
};

}  // namespace offpath::memory
