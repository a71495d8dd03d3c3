// Status: how an internal call ended: ok, not yet (in_progress, retry), or an error. The values agree with
// offpath_status_t of the C API. The code that detects an error first logs it, once; its callers only return
// it.
#pragma once

#include <offpath/types.h>

#include <cstdint>

namespace offpath {

enum class Status : std::int32_t {
    ok = OFFPATH_OK,
    in_progress = OFFPATH_IN_PROGRESS,
    retry = OFFPATH_RETRY,
    invalid = OFFPATH_ERR_INVALID,
    unavailable = OFFPATH_ERR_UNAVAILABLE,
    version = OFFPATH_ERR_VERSION,
    unsupported = OFFPATH_ERR_UNSUPPORTED,
    memory = OFFPATH_ERR_MEMORY,
    access = OFFPATH_ERR_ACCESS,
    truncated = OFFPATH_ERR_TRUNCATED,
    peer_lost = OFFPATH_ERR_PEER_LOST,
    protocol = OFFPATH_ERR_PROTOCOL,
    canceled = OFFPATH_ERR_CANCELED,
    system = OFFPATH_ERR_SYSTEM,
};

constexpr bool is_error(Status status) {
    return static_cast<std::int32_t>(status) < 0;
}
constexpr offpath_status_t to_c(Status status) {
    return static_cast<offpath_status_t>(status);
}
constexpr Status from_c(offpath_status_t status) {
    return static_cast<Status>(status);
}

// A short English text; never null.
const char* to_string(Status status);

}  // namespace offpath
