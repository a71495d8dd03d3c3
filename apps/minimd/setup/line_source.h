// Text that people wrote, line by line. Every mistake is reported as FILE:LINE: expected ..., found '...'.
//
// A LineSource reads a stream once, from beginning to end. It does not own the stream. Errors are
// mpi_support::UsageError. One thread.
#pragma once

#include <cstdint>
#include <istream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minimd {

// Convert the whole word to a number. Return nothing if it is not a number, or is infinite or NaN.
std::optional<double> to_double(std::string_view word);
std::optional<std::int64_t> to_integer(std::string_view word);

class LineSource {
  public:
    LineSource(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

    // Goes to the next line, which is kept without its line end. Returns false if there is none.
    bool next();
    // Goes to the next line, and reports an error if there is none.
    void need(const std::string& expected);

    const std::string& name() const { return name_; }
    std::int64_t number() const { return number_; }
    std::string_view line() const { return line_; }
    // The blank-separated words of the line.
    const std::vector<std::string_view>& words() const { return words_; }
    // Removes the first '#' and what follows it from the line. comment() then returns the text behind the
    // '#'.
    void drop_comment();
    std::string_view comment() const { return comment_; }

    // Returns word `at` of the line as a number in [low, high]. `what` names the value in the message.
    double number_at(std::size_t at, const std::string& what,
                     double low = -std::numeric_limits<double>::max(),
                     double high = std::numeric_limits<double>::max()) const;
    // Returns a number that is above 0 and large enough to divide by.
    double positive_at(std::size_t at, const std::string& what) const;
    std::int64_t integer_at(std::size_t at, const std::string& what, std::int64_t low,
                            std::int64_t high) const;

    // Throws "FILE:LINE: expected `expected`, found ...", with the whole line unless `found` is given.
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
