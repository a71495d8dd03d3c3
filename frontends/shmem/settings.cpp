#include "settings.h"

#include "base/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include <unistd.h>

namespace offpath::shmem {

namespace {

constexpr std::uint64_t most_heap_bytes = std::uint64_t{1} << 46;

}  // namespace

std::uint64_t parse_size(const std::string& text, const std::string& name) {
    std::size_t used = 0;
    double value = -1;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    std::string suffix = text.substr(used);
    std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (suffix.size() == 2 && suffix[1] == 'b') suffix.pop_back();
    const std::size_t power = suffix.empty() ? 0 : std::string_view("?kmgt").find(suffix[0]);
    const bool known =
        used > 0 && suffix.size() <= 1 && power <= 4 && suffix != "?" && std::isfinite(value) && value >= 0;
    const double bytes = known ? std::ceil(std::ldexp(value, static_cast<int>(10 * power))) : 0;
    if (bytes < 1 || bytes > static_cast<double>(most_heap_bytes))
        throw std::invalid_argument(
            fmt::format("{}='{}': a number of bytes up to {} is accepted, with k, m, g or t behind it", name,
                        text, most_heap_bytes));
    return static_cast<std::uint64_t>(bytes);
}

Settings read_settings() {
    Settings settings;
    for (const char* name : {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"}) {
        const std::string text = environment::text(name, "");
        if (text.empty()) continue;
        settings.heap_bytes = parse_size(text, name);
        break;
    }
    settings.near_device_bytes = environment::bytes("OFFPATH_SHMEM_NEAR_MIN", settings.near_device_bytes);
    settings.checks = environment::flag("OFFPATH_SHMEM_CHECK", false) ? 1 : 0;
    settings.attach_again = environment::flag("OFFPATH_SHMEM_ATTACH_AGAIN", true) ? 1 : 0;
    settings.map = environment::flag("OFFPATH_SHMEM_MAP", true) ? 1 : 0;
    return settings;
}

std::uint64_t default_heap_bytes() {
    const auto pages = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 1L));
    const auto memory = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    constexpr std::uint64_t most = std::uint64_t{1} << 30, unit = std::uint64_t{2} << 20;
    return std::clamp(memory / 4 / unit * unit, unit, most);
}

}  // namespace offpath::shmem
