// The info key that the programs of hosts and of regions set on communicators and windows: the other end of
// messages and one-sided operations is of the other kind. For a host these are devices, for a region hosts.
// Pure.
#pragma once

#include <optional>
#include <string_view>

namespace offpath::mpi {

inline constexpr const char* hetero_key = "REMOTE_DEST_HETERO";

// Nothing: a value that is not accepted.
inline std::optional<bool> hetero_value(std::string_view text) {
    if (text == "1" || text == "true") return true;
    if (text == "0" || text == "false") return false;
    return std::nullopt;
}

}  // namespace offpath::mpi
