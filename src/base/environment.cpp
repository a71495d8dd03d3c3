#include "base/environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <stdexcept>

namespace offpath::environment {
namespace {

std::uint64_t parse_number(const std::string& text, const std::string& what, std::string* rest) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || (rest == nullptr && stop != end)) {
        throw std::invalid_argument(fmt::format("{}='{}': a whole number is accepted, e.g. 64", what, text));
    }
    if (rest != nullptr) rest->assign(stop, end);
    return value;
}

}  // namespace

std::string text(const char* name, const std::string& otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : otherwise;
}

std::uint64_t number(const char* name, std::uint64_t otherwise) {
    const std::string value = text(name, "");
    return value.empty() ? otherwise : parse_number(value, name, nullptr);
}

std::uint64_t parse_bytes(const std::string& text, const std::string& what) {
    std::string suffix;
    const std::uint64_t value = parse_number(text, what, &suffix);
    int shift = 0;
    if (suffix == "K" || suffix == "k") {
        shift = 10;
    } else if (suffix == "M" || suffix == "m") {
        shift = 20;
    } else if (suffix == "G" || suffix == "g") {
        shift = 30;
    } else if (!suffix.empty()) {
        throw std::invalid_argument(
            fmt::format("{}='{}': bytes are accepted, with K, M or G behind, e.g. 64K", what, text));
    }
    if (value > (UINT64_MAX >> shift))
        throw std::invalid_argument(fmt::format("{}='{}' is too large", what, text));
    return value << shift;
}

std::uint64_t bytes(const char* name, std::uint64_t otherwise) {
    const std::string value = text(name, "");
    return value.empty() ? otherwise : parse_bytes(value, name);
}

bool flag(const char* name, bool otherwise) {
    const std::string value = text(name, "");
    if (value.empty()) return otherwise;
    if (value == "1" || value == "on" || value == "yes" || value == "true") return true;
    if (value == "0" || value == "off" || value == "no" || value == "false") return false;
    throw std::invalid_argument(fmt::format("{}='{}': on or off is accepted", name, value));
}

}  // namespace offpath::environment
