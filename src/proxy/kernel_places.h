// The libraries that clients on other systems may load for kernels: those below the directories given to the
// daemon. It only reads the file system. Threads: any.
#pragma once

#include "base/status.h"

#include <string>
#include <vector>

namespace offpath::proxy {

// Parses "DIR" or "DIR:DIR..." into canonical paths. unavailable, with `problem`: one does not exist.
Status parse_kernel_places(const std::string& list, std::vector<std::string>& places, std::string& problem);

// `path` comes from the client: absolute, or a name that is searched in each place in turn. invalid, with
// `problem`: it is in none of them.
Status find_kernel_library(const std::vector<std::string>& places, const std::string& path,
                           std::string& library, std::string& problem);

}  // namespace offpath::proxy
