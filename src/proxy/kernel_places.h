// Which libraries clients on other systems may have loaded for kernels: those below the directories that the
// daemon was told of. Reads the file system, no more. Threads: any.
#pragma once

#include "base/status.h"

#include <string>
#include <vector>

namespace offpath::proxy {

// "DIR" or "DIR:DIR...", as canonical paths. unavailable, with the reason: one is not there.
Status parse_kernel_places(const std::string& list, std::vector<std::string>& places, std::string& problem);

// `path` as the client says it: absolute, or a name that is looked up in each place in turn. invalid, with
// the reason: it is in none of them.
Status find_kernel_library(const std::vector<std::string>& places, const std::string& path,
                           std::string& library, std::string& problem);

}  // namespace offpath::proxy
