#include "minimd/setup/line_source.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "support/mpi_program.h"

namespace minimd {

namespace {

constexpr std::string_view blanks = " \t\r\f\v";

template <typename T>
std::optional<T> parsed(std::string_view word) {
    if (word.size() > 1 && word.front() == '+' && word[1] != '-') word.remove_prefix(1);
    T value{};
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return value;
}

std::string shown(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

}  // namespace

std::optional<double> to_double(std::string_view word) {
    const std::optional<double> value = parsed<double>(word);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> to_integer(std::string_view word) {
    return parsed<std::int64_t>(word);
}

bool LineSource::next() {
    if (over_ || !std::getline(in_, line_)) {
        if (!over_) ++number_;
        over_ = true;
        line_.clear();
        words_.clear();
        return false;
    }
    ++number_;
    split();
    return true;
}

void LineSource::need(const std::string& expected) {
    if (!next()) fail(expected);
}

void LineSource::drop_comment() {
    const std::size_t at = line_.find('#');
    if (at == std::string::npos) {
        comment_.clear();
        return;
    }
    comment_ = line_.substr(at + 1);
    line_.resize(at);
    split();
}

void LineSource::split() {
    words_.clear();
    const std::string_view line = line_;
    for (std::size_t at = line.find_first_not_of(blanks); at != line.npos;) {
        const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
        words_.push_back(line.substr(at, end - at));
        at = line.find_first_not_of(blanks, end);
    }
}

double LineSource::positive_at(std::size_t at, const std::string& what) const {
    const double value = number_at(at, what);
    if (value < std::numeric_limits<double>::min()) fail(what + " above 0", words_[at]);
    return value;
}

double LineSource::number_at(std::size_t at, const std::string& what, double low, double high) const {
    if (at >= words_.size()) fail(what);
    const std::optional<double> value = to_double(words_[at]);
    if (!value) fail(what, words_[at]);
    if (*value < low || *value > high) {
        constexpr double most = std::numeric_limits<double>::max();
        fail(what +
                 (high == most ? " of at least " + shown(low) : " from " + shown(low) + " to " + shown(high)),
             words_[at]);
    }
    return *value;
}

std::int64_t LineSource::integer_at(std::size_t at, const std::string& what, std::int64_t low,
                                    std::int64_t high) const {
    if (at >= words_.size()) fail(what);
    const std::optional<std::int64_t> value = to_integer(words_[at]);
    if (!value) fail(what + ", a whole number", words_[at]);
    if (*value < low || *value > high)
        fail(what + " from " + std::to_string(low) + " to " + std::to_string(high), words_[at]);
    return *value;
}

void LineSource::fail(const std::string& expected) const {
    if (over_)
        throw mpi_support::UsageError(name_ + ":" + std::to_string(number_) + ": expected " + expected +
                                      ", but the file ends here");
    fail(expected, line_);
}

void LineSource::fail(const std::string& expected, std::string_view found) const {
    constexpr std::size_t most = 60;
    const std::size_t last = found.find_last_not_of(blanks);
    std::string text(found.substr(0, last == found.npos ? 0 : last + 1));
    if (text.size() > most) text = text.substr(0, most) + "...";
    throw mpi_support::UsageError(name_ + ":" + std::to_string(number_) + ": expected " + expected +
                                  ", found " + (text.empty() ? "an empty line" : "'" + text + "'"));
}

}  // namespace minimd
