// Logging for daemon and client, over spdlog. Each event is one line, on stderr or in a file, and starts with
// the role of the process. Thread-safe. A line is formatted only when its level is enabled.
// Warnings and errors name a code.
#pragma once

#include "base/codes.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace offpath::log {

enum class Level { trace, debug, info, warn, error, off };

// `role` appears in every line, e.g. "offpathd[node1]". An empty file name means stderr. parse_level() throws
// std::invalid_argument for an unknown level.
void configure(std::string_view role, Level level, const std::string& file = {});
Level parse_level(std::string_view name);
bool enabled(Level level);
void write(Level level, std::string_view line);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(Code code, fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::warn))
        write(Level::warn, with_code(fmt::format(format, std::forward<Args>(args)...), code));
}
template <typename... Args>
void error(Code code, fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::error))
        write(Level::error, with_code(fmt::format(format, std::forward<Args>(args)...), code));
}

}  // namespace offpath::log
