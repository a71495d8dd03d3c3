// The descriptors of a staging area. The proxy makes them and sends them to the client over their socket, in
// this order.
#pragma once

#include "memory/file.h"

namespace offpath::memory {

struct StagingFiles {
    File area;  // memory file: rings and slots (staging_area.h)
    File bell;  // the client's end of a socket pair over which both sides wake each other
};

}  // namespace offpath::memory
