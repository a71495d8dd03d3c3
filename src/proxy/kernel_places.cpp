#include "proxy/kernel_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace offpath::proxy {
namespace fs = std::filesystem;

Status parse_kernel_places(const std::string& list, std::vector<std::string>& places, std::string& problem) {
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(':', at), list.size());
        const std::string word = list.substr(at, end - at);
        at = end + 1;
        std::error_code error;
        const fs::path place = fs::canonical(word, error);
        if (word.empty() || error || !fs::is_directory(place, error)) {
            problem = fmt::format("'{}' is no directory; DIR or DIR:DIR is accepted", word);
            return Status::unavailable;
        }
        places.push_back(place.string());
    }
    return Status::ok;
}

Status find_kernel_library(const std::vector<std::string>& places, const std::string& path,
                           std::string& library, std::string& problem) {
    for (const fs::path place : places) {
        // An absolute path replaces the place. canonical() follows links and ".." before the comparison.
        std::error_code error;
        const fs::path found = fs::canonical(place / path, error);
        if (error || !fs::is_regular_file(found, error)) continue;
        if (std::mismatch(place.begin(), place.end(), found.begin(), found.end()).first != place.end())
            continue;
        library = found.string();
        return Status::ok;
    }
    problem = fmt::format("there is no library {} in the directories of --allow-kernels", path);
    return Status::invalid;
}

}  // namespace offpath::proxy
