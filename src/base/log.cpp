#include "base/log.h"

#include "base/log_silence.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <stdexcept>

namespace offpath::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
    switch (level) {
        case Level::trace:
            return spdlog::level::trace;
        case Level::debug:
            return spdlog::level::debug;
        case Level::info:
            return spdlog::level::info;
        case Level::warn:
            return spdlog::level::warn;
        case Level::error:
            return spdlog::level::err;
        case Level::off:
            return spdlog::level::off;
    }
    return spdlog::level::warn;
}

std::shared_ptr<spdlog::logger>& logger() {
    static std::shared_ptr<spdlog::logger> instance = [] {
        auto made =
            std::make_shared<spdlog::logger>("offpath", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("offpath: %v");
        made->set_level(spdlog::level::warn);
        return made;
    }();
    return instance;
}

}  // namespace

void configure(std::string_view role, Level level, const std::string& file) {
    std::shared_ptr<spdlog::sinks::sink> sink;
    if (file.empty()) {
        sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
        sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    }
    auto made = std::make_shared<spdlog::logger>("offpath", std::move(sink));
    made->set_pattern(fmt::format("[%H:%M:%S.%e] {} %l: %v", role));
    made->set_level(to_spdlog(level));
    made->flush_on(spdlog::level::info);
    logger() = std::move(made);
}

Level parse_level(std::string_view name) {
    if (name == "trace") return Level::trace;
    if (name == "debug") return Level::debug;
    if (name == "info") return Level::info;
    if (name == "warn") return Level::warn;
    if (name == "error") return Level::error;
    if (name == "off") return Level::off;
    throw std::invalid_argument(
        fmt::format("unknown log level '{}': use trace, debug, info, warn, error or off", name));
}

namespace {
thread_local int silences = 0;
}

Silence::Silence() {
    ++silences;
}
Silence::~Silence() {
    --silences;
}

bool enabled(Level level) {
    return silences == 0 && logger()->should_log(to_spdlog(level));
}

void write(Level level, std::string_view line) {
    if (silences == 0) logger()->log(to_spdlog(level), "{}", line);
}

}  // namespace offpath::log
