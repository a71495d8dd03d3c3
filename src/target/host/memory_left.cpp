#include "target/host/memory_left.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace offpath::target {
namespace {

// The number in a file that has nothing else; `otherwise` if there is none, such as "max".
std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
    std::ifstream file(path);
    std::uint64_t number = 0;
    return file >> number ? number : otherwise;
}

// The number after `name` in a file of names and numbers.
std::uint64_t number_of(const std::string& path, const std::string& name, std::uint64_t otherwise) {
    std::ifstream file(path);
    std::string line, word;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::uint64_t number = 0;
        if (words >> word && word == name && words >> number) return number;
    }
    return otherwise;
}

struct Files {
    const char *limit, *used, *cache;
};
constexpr Files unified = {"memory.max", "memory.current", "inactive_file"};
constexpr Files separate = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// In a container the path may begin above what is mounted; then only the groups that are there count.
std::uint64_t left_in_groups(const std::string& mount, std::string path, const Files& files) {
    std::uint64_t left = UINT64_MAX;
    while (true) {
        const std::string folder = mount + (path == "/" ? "" : path) + "/";
        const std::uint64_t limit = number_in(folder + files.limit, UINT64_MAX);
        if (limit != UINT64_MAX) {
            const std::uint64_t used = number_in(folder + files.used, 0);
            // Pages of files that nobody uses go when memory is wanted.
            const std::uint64_t held =
                used - std::min(used, number_of(folder + "memory.stat", files.cache, 0));
            left = std::min(left, limit - std::min(limit, held));
        }
        if (path.empty() || path == "/") return left;
        path.erase(path.rfind('/'));
    }
}

}  // namespace

std::uint64_t memory_left(const std::string& root) {
    const std::uint64_t kib = number_of(root + "/proc/meminfo", "MemAvailable:", UINT64_MAX);
    std::uint64_t left = kib == UINT64_MAX ? kib : kib << 10;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        // NUMBER:CONTROLLERS:PATH; the unified hierarchy has no controllers here.
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path = line.substr(second + 1);
        if (controllers == ",,")
            left = std::min(left, left_in_groups(root + "/sys/fs/cgroup", path, unified));
        else if (controllers.find(",memory,") != std::string::npos)
            left = std::min(left, left_in_groups(root + "/sys/fs/cgroup/memory", path, separate));
    }
    return left;
}

std::uint64_t memory_present() {
    std::ifstream facts("/proc/self/statm");
    std::uint64_t all = 0, resident = 0, of_files = 0;
    if (!(facts >> all >> resident >> of_files)) return 0;
    return (resident - std::min(resident, of_files)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace offpath::target
