// How long the peer of a connection may leave a query unanswered before the connection counts as lost.
// OFFPATH_LOST_AFTER_S sets it: whole seconds, 0 to 3600, default 8; 0 means never. The variable is read
// once. Threads: any.
#pragma once

#include <cstdint>

namespace offpath {

// UINT64_MAX means never. Throws std::invalid_argument when the variable holds something else.
std::uint64_t lost_after_ns();

}  // namespace offpath
