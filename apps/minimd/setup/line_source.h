// Text that people wrote, line by line: every mistake is reported as FILE:LINE: expected ..., found '...'.
//
// A LineSource reads a stream that it does not own, once, forwards. Throws mpi_support::UsageError. One
// thread.
#pragma once

#include <cstdint>
#include <istream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minimd {

// The whole word as a number, or nothing. Infinities and NaN are none.
std::optional<double> to_double(std::string_view word);
std::optional<std::int64_t> to_integer(std::string_view word);

class LineSource {
  public:
    LineSource(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

    // Goes to the next line, which comes without its end; false: there is none.
    bool next();
    // The same, where a line has to be.
    void need(const std::string& expected);

    const std::string& name() const { return name_; }
    std::int64_t number() const { return number_; }
    std::string_view line() const { return line_; }
    // The blank-separated words of the line.
    const std::vector<std::string_view>& words() const { return words_; }
    // Takes what begins with the first '#' from the line; comment() has what follows that sign.
    void drop_comment();
    std::string_view comment() const { return comment_; }

    // Word `at` of the line as a number inside [low, high]; `what` names it in the message.
    double number_at(std::size_t at, const std::string& what,
                     double low = -std::numeric_limits<double>::max(),
                     double high = std::numeric_limits<double>::max()) const;
    // A number above 0, and large enough to be divided by.
    double positive_at(std::size_t at, const std::string& what) const;
    std::int64_t integer_at(std::size_t at, const std::string& what, std::int64_t low,
                            std::int64_t high) const;

    // "FILE:LINE: expected `expected`, found the line".
    [[noreturn]] void fail(const std::string& expected) const;
    [[noreturn]] void fail(const std::string& expected, std::string_view found) const;

  private:
    void split();

    std::istream& in_;
    std::string name_;
    std::string line_, comment_;
    std::vector<std::string_view> words_;
    std::int64_t number_ = 0;
    bool over_ = false;
};

}  // namespace minimd
