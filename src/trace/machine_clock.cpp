#include "trace/machine_clock.h"

#include "base/file_descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace offpath::trace {
namespace {

constexpr std::size_t most_bytes = 39, most_of_id = 12;

std::string read_start(const char* path) {
    std::array<char, 256> text{};
    const FileDescriptor file(open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t got = file ? read(file.get(), text.data(), text.size()) : 0;
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

std::string machine_clock() {
    return machine_clock(read_start("/proc/sys/kernel/random/boot_id"),
                         read_start("/proc/self/timens_offsets"));
}

std::string machine_clock(const std::string& boot_id, const std::string& offsets) {
    const std::string id = boot_id.substr(0, boot_id.find('\n')).substr(0, most_bytes);
    long long seconds = 0, nanoseconds = 0;
    const std::size_t line = offsets.find("monotonic");
    if (line == std::string::npos ||
        std::sscanf(offsets.c_str() + line, "monotonic %lld %lld", &seconds, &nanoseconds) != 2 ||
        (seconds == 0 && nanoseconds == 0))
        return id;
    return fmt::format("{}{:+}.{:09}", id.substr(0, most_of_id), seconds, nanoseconds).substr(0, most_bytes);
}

}  // namespace offpath::trace
