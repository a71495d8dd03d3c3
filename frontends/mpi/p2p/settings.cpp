#include "settings.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/environment.h"
#include "runtime/runtime.h"

namespace offpath::mpi::p2p {

Settings read_settings() {
    Settings settings;
    const std::string scope = environment::text("OFFPATH_P2P", "remote");
    if (scope == "off") {
        settings.scope = Scope::off;
    } else if (scope == "all") {
        settings.scope = Scope::all;
    } else if (scope != "remote") {
        throw std::invalid_argument(fmt::format(
            "OFFPATH_P2P='{}': accepted are off, remote (messages between nodes) and all", scope));
    }
    const std::string waited = environment::text("OFFPATH_P2P_WAITED", "host");
    if (waited != "host" && waited != "device") {
        throw std::invalid_argument(
            fmt::format("OFFPATH_P2P_WAITED='{}': accepted are host and device", waited));
    }
    settings.waited_by_host = waited == "host" ? 1 : 0;
    // A header in the user's buffer must not be longer than its message, and the host's MPI counts bytes in
    // an int.
    settings.min_bytes =
        std::clamp<std::uint64_t>(environment::bytes("OFFPATH_MIN_BYTES", settings.min_bytes),
                                  header_bytes + 1, std::uint64_t{1} << 30);
    settings.secret = draw_header_secret();
    return settings;
}

void agree_on_settings() {
    job_settings = settings_of_rank_0(read_settings);
}

}  // namespace offpath::mpi::p2p
