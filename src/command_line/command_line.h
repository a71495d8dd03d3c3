// The command lines of programs: options, flags, subcommands, help, and errors that name the option.
//
// A thin layer over CLI11, with its names. No other file than command_line.cpp includes CLI11, because each
// file that does takes seconds longer to compile.
//
// An App owns its options and subcommands: pointers to them are valid as long as it lives. It writes to the
// variables that its options are bound to, so they must live until parse() has returned. Calls that add
// options throw std::runtime_error if names clash. Threads: one at a time.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace offpath::command_line {

template <typename T, typename... Types>
concept OneOf = (std::same_as<T, Types> || ...);

// The types of the variables that options are bound to. Options can be bound to enums, too.
template <typename T>
concept Value = OneOf<T, bool, int, unsigned, long, unsigned long, double, std::string, std::optional<int>,
                      std::optional<double>, std::optional<std::string>, std::vector<double>,
                      std::vector<std::string>, std::vector<unsigned long>>;
template <typename T>
concept Enum = std::is_enum_v<T>;

// The user has given a wrong command line, or has asked for help or for the version. App::exit() prints what
// there is to say.
class ParseError : public std::runtime_error {
  public:
    // The value of `option` is refused.
    ParseError(const std::string& option, const std::string& problem);
    ParseError(std::string kind, const std::string& message, int exit_code)
        : std::runtime_error(message), kind_(std::move(kind)), exit_code_(exit_code) {}

    // CLI11's name and exit code of the error. The exit code is 0 after a request for help or for the
    // version.
    const std::string& kind() const { return kind_; }
    int exit_code() const { return exit_code_; }

  private:
    std::string kind_;
    int exit_code_;
};

// Judges a word of the command line.
class Validator {
  public:
    // `judge` returns what is wrong with the word, or an empty string. What it does to the word counts in
    // Option::transform() only. The help shows the description.
    template <std::invocable<std::string&> Judge>
    Validator(Judge judge, const std::string& description = "")
        : Validator(std::function<std::string(std::string&)>(std::move(judge)), description) {}
    Validator(std::function<std::string(std::string&)> judge, const std::string& description);
    explicit Validator(std::shared_ptr<const CLI::Validator> validator) : validator_(std::move(validator)) {}

  private:
    friend class Option;
    std::shared_ptr<const CLI::Validator> validator_;
};

// Accepts numbers from `least` to `most`.
class Range : public Validator {
  public:
    template <std::signed_integral T>
    Range(T least, T most) : Validator(of(std::int64_t{least}, std::int64_t{most})) {}
    template <std::unsigned_integral T>
    Range(T least, T most) : Validator(of(std::uint64_t{least}, std::uint64_t{most})) {}
    Range(double least, double most) : Validator(of(least, most)) {}

  private:
    static Validator of(std::int64_t least, std::int64_t most);
    static Validator of(std::uint64_t least, std::uint64_t most);
    static Validator of(double least, double most);
};

struct IsMember : Validator {
    explicit IsMember(const std::vector<std::string>& words);
    IsMember(std::initializer_list<const char*> words);
    IsMember(std::initializer_list<int> numbers);
};

struct NonNegativeNumber : Validator {
    NonNegativeNumber();
};

struct ExistingFile : Validator {
    ExistingFile();
};

struct ExistingDirectory : Validator {
    ExistingDirectory();
};

// For Option::transform(): replaces a size such as 64K, with suffixes that are powers of 1024, by the number
// of bytes.
struct AsSizeValue : Validator {
    AsSizeValue();
};
// Returns the number of bytes that AsSizeValue puts in the place of `text`, or nothing if that is no size.
std::optional<std::uint64_t> parse_size(std::string text);

// For Option::transform() where the option is bound to an enum: replaces a name by the number of its value.
class CheckedTransformer : public Validator {
  public:
    template <Enum E>
    explicit CheckedTransformer(const std::map<std::string, E>& values) : Validator(of(numbers(values))) {}

  private:
    using Numbers = std::vector<std::pair<std::string, std::int64_t>>;

    template <Enum E>
    static Numbers numbers(const std::map<std::string, E>& values) {
        Numbers found;
        for (const auto& [name, value] : values)
            found.emplace_back(name, static_cast<std::int64_t>(value));
        return found;
    }
    static Validator of(const Numbers& numbers);
};

// An option or a flag. Each call returns this option again.
class Option {
  public:
    explicit Option(CLI::Option* option) : option_(option) {}

    // Checks follow transformations. Of several transformations, the last one that was added comes first.
    Option* check(const Validator& validator);
    Option* transform(const Validator& validator);
    Option* required();
    // The option takes several values in one word, with this character between them.
    Option* delimiter(char between);
    Option* needs(Option* other);
    Option* excludes(Option* other);
    // The help shows the variable's present value as the default, or the text.
    Option* capture_default_str();
    Option* default_str(const std::string& text);

    // How many words of the command line belong to it.
    std::size_t count() const;

  private:
    CLI::Option* option_;
};

class App {
  public:
    // Without a name, the program is called as its command line calls it.
    explicit App(const std::string& description, const std::string& name = "");
    App(const App&) = delete;
    App& operator=(const App&) = delete;
    ~App();

    // `names` are those of one option, with commas, such as "-s,--size", or a word without dashes for an
    // operand. "!--no-kernels" is a flag that stands for false.
    template <Value T>
    Option* add_option(const std::string& names, T& value, const std::string& description = "");
    template <Enum E>
    Option* add_option(const std::string& names, E& value, const std::string& description = "") {
        return add_enum(
            names, [&value](std::int64_t number) { value = static_cast<E>(number); }, description);
    }
    Option* add_option_function(const std::string& names, std::function<void(const std::string&)> take,
                                const std::string& description = "");
    Option* add_flag(const std::string& names, bool& value, const std::string& description = "");
    Option* add_flag_callback(const std::string& names, std::function<void()> call,
                              const std::string& description = "");
    void set_version_flag(const std::string& name, std::function<std::string()> version);

    // Of the options that are added from now on: their heading in the help; the last of several values
    // counts.
    void default_group(const std::string& heading);
    void default_take_last();

    App* add_subcommand(const std::string& name, const std::string& description);
    void require_subcommand(int count);
    App* add_option_group(const std::string& name);
    // So many options of this group have to be given.
    void require_option(int count);
    // The text at the end of the help.
    void footer(const std::string& text);

    // Throws ParseError, unless the program can go on.
    void parse(int argc, char** argv);
    // Prints help to standard output, or an error to standard error. Returns the exit code.
    int exit(const ParseError& error) const;
    // Both: returns the exit code unless the program can go on.
    std::optional<int> parse_or_exit(int argc, char** argv);

    // Whether the command line has this subcommand.
    bool parsed() const;
    std::string get_name() const;

  private:
    struct Parts;

    explicit App(CLI::App& below);
    Option* add_enum(const std::string& names, std::function<void(std::int64_t)> take,
                     const std::string& description);

    std::unique_ptr<Parts> parts_;
};

}  // namespace offpath::command_line

// Programs use this name.
namespace cli = offpath::command_line;
