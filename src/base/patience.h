// How long the other side of a connection may be silent, though it was asked, before it counts as lost.
// OFFPATH_LOST_AFTER_S: whole seconds, 0 to 3600; 0: for ever; default 8. Read once. Threads: any.
#pragma once

#include <cstdint>

namespace offpath {

// UINT64_MAX: for ever. Throws std::invalid_argument where the variable holds something else.
std::uint64_t lost_after_ns();

}  // namespace offpath
