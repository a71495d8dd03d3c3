// Codes of warnings and errors. Each line that warns a user ends with one, as "[OFP-0103]".
// docs/troubleshooting.md says for each code what it means and what to do. Messages share a code if a user
// does the same about them.
//
// A number, once given, keeps its meaning. The command has the numbers from 801 on (python/offpath/codes.py),
// and the plug-in for Slurm those from 601 on (frontends/slurm). A test compares all of them with the page.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace offpath {

enum class Code : std::uint16_t {
    no_device = 101,
    other_release = 102,
    device_lost = 103,
    ranks_apart = 104,
    refused = 105,
    daemon_start = 106,
    client_lost = 107,
    device_ranks = 108,

    cores = 201,
    resources = 202,
    host_memory = 203,
    exported_memory = 204,
    file = 205,

    no_way = 301,
    slower_way = 302,
    network_end = 303,

    arguments = 401,
    unequal_ranks = 402,
    kernel = 403,
    target_region = 404,
    limit = 405,
    window = 406,
    region = 407,
    not_supported = 408,
    operation = 409,
    host_mpi = 410,
    shmem_call = 411,
    shmem_lost = 412,
    setting = 413,
    unfinished = 414,
    receives = 415,

    malformed = 501,
};

inline std::string with_code(std::string_view line, Code code) {
    return fmt::format("{} [OFP-{:04}]", line, static_cast<unsigned>(code));
}

}  // namespace offpath
