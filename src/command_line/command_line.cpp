#include "command_line/command_line.h"

#include <CLI/CLI.hpp>
#include <deque>

namespace offpath::command_line {
namespace {

// Stands for all enums. CLI11 prints one that is stored in a byte as a character.
enum class AnyEnum : std::int64_t {};

std::shared_ptr<const CLI::Validator> held(CLI::Validator validator) {
    return std::make_shared<CLI::Validator>(std::move(validator));
}

}  // namespace

ParseError::ParseError(const std::string& option, const std::string& problem)
    : ParseError("ValidationError", option + ": " + problem,
                 static_cast<int>(CLI::ExitCodes::ValidationError)) {}

Validator::Validator(std::function<std::string(std::string&)> judge, const std::string& description)
    : validator_(std::make_shared<CLI::Validator>(std::move(judge), description)) {}

Validator Range::of(std::int64_t least, std::int64_t most) {
    return Validator(held(CLI::Range(least, most)));
}
Validator Range::of(std::uint64_t least, std::uint64_t most) {
    return Validator(held(CLI::Range(least, most)));
}
Validator Range::of(double least, double most) {
    return Validator(held(CLI::Range(least, most)));
}

IsMember::IsMember(const std::vector<std::string>& words) : Validator(held(CLI::IsMember(words))) {}
IsMember::IsMember(std::initializer_list<const char*> words)
    : IsMember(std::vector<std::string>(words.begin(), words.end())) {}
IsMember::IsMember(std::initializer_list<int> numbers) : Validator(held(CLI::IsMember(numbers))) {}
NonNegativeNumber::NonNegativeNumber() : Validator(held(CLI::NonNegativeNumber)) {}
ExistingFile::ExistingFile() : Validator(held(CLI::ExistingFile)) {}
ExistingDirectory::ExistingDirectory() : Validator(held(CLI::ExistingDirectory)) {}
AsSizeValue::AsSizeValue() : Validator(held(CLI::AsSizeValue(false))) {}

std::optional<std::uint64_t> parse_size(std::string text) {
    try {
        std::uint64_t bytes = 0;
        if (CLI::AsSizeValue(false)(text).empty() && CLI::detail::lexical_cast(text, bytes)) return bytes;
    } catch (const CLI::ValidationError&) {  // an unknown suffix
    }
    return std::nullopt;
}

Validator CheckedTransformer::of(const Numbers& numbers) {
    std::vector<std::pair<std::string, AnyEnum>> values;
    for (const auto& [name, number] : numbers)
        values.emplace_back(name, static_cast<AnyEnum>(number));
    return Validator(held(CLI::CheckedTransformer(values)));
}

Option* Option::check(const Validator& validator) {
    option_->check(*validator.validator_);
    return this;
}
Option* Option::transform(const Validator& validator) {
    option_->transform(*validator.validator_);
    return this;
}
Option* Option::required() {
    option_->required();
    return this;
}
Option* Option::delimiter(char between) {
    option_->delimiter(between);
    return this;
}
Option* Option::needs(Option* other) {
    option_->needs(other->option_);
    return this;
}
Option* Option::excludes(Option* other) {
    option_->excludes(other->option_);
    return this;
}
Option* Option::capture_default_str() {
    option_->capture_default_str();
    return this;
}
Option* Option::default_str(const std::string& text) {
    option_->default_str(text);
    return this;
}
std::size_t Option::count() const {
    return option_->count();
}

// CLI11 owns its subcommands, so those have no `own`. The deques keep the addresses that App has returned.
struct App::Parts {
    std::unique_ptr<CLI::App> own;
    CLI::App& app;
    std::deque<Option> options;
    std::deque<std::unique_ptr<App>> below;

    Option* keep(CLI::Option* option) { return &options.emplace_back(option); }
    App* keep(CLI::App* added) { return below.emplace_back(new App(*added)).get(); }
};

App::App(const std::string& description, const std::string& name) {
    auto own = std::make_unique<CLI::App>(description, name);
    CLI::App& app = *own;
    app.set_version_flag("--version", (name.empty() ? "offpath" : name) + " " OFFPATH_VERSION);
    parts_.reset(new Parts{std::move(own), app, {}, {}});
}
App::App(CLI::App& below) : parts_(new Parts{nullptr, below, {}, {}}) {}
App::~App() = default;

template <Value T>
Option* App::add_option(const std::string& names, T& value, const std::string& description) {
    return parts_->keep(parts_->app.add_option(names, value, description));
}
template Option* App::add_option(const std::string&, bool&, const std::string&);
template Option* App::add_option(const std::string&, int&, const std::string&);
template Option* App::add_option(const std::string&, unsigned&, const std::string&);
template Option* App::add_option(const std::string&, long&, const std::string&);
template Option* App::add_option(const std::string&, unsigned long&, const std::string&);
template Option* App::add_option(const std::string&, double&, const std::string&);
template Option* App::add_option(const std::string&, std::string&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<double>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<unsigned long>&, const std::string&);

Option* App::add_enum(const std::string& names, std::function<void(std::int64_t)> take,
                      const std::string& description) {
    const auto take_enum = [take = std::move(take)](const AnyEnum& value) {
        take(static_cast<std::int64_t>(value));
    };
    return parts_->keep(parts_->app.add_option_function<AnyEnum>(names, take_enum, description));
}
Option* App::add_option_function(const std::string& names, std::function<void(const std::string&)> take,
                                 const std::string& description) {
    return parts_->keep(parts_->app.add_option_function<std::string>(names, std::move(take), description));
}
Option* App::add_flag(const std::string& names, bool& value, const std::string& description) {
    return parts_->keep(parts_->app.add_flag(names, value, description));
}
Option* App::add_flag_callback(const std::string& names, std::function<void()> call,
                               const std::string& description) {
    return parts_->keep(parts_->app.add_flag_callback(names, std::move(call), description));
}
void App::set_version_flag(const std::string& name, std::function<std::string()> version) {
    parts_->app.set_version_flag(name, std::move(version));
}

void App::default_group(const std::string& heading) {
    parts_->app.option_defaults()->group(heading);
}
void App::default_take_last() {
    parts_->app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

App* App::add_subcommand(const std::string& name, const std::string& description) {
    return parts_->keep(parts_->app.add_subcommand(name, description));
}
void App::require_subcommand(int count) {
    parts_->app.require_subcommand(count);
}
App* App::add_option_group(const std::string& name) {
    return parts_->keep(parts_->app.add_option_group(name));
}
void App::require_option(int count) {
    parts_->app.require_option(count);
}
void App::footer(const std::string& text) {
    parts_->app.footer(text);
}

void App::parse(int argc, char** argv) {
    try {
        parts_->app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        throw ParseError(error.get_name(), error.what(), error.get_exit_code());
    }
}
int App::exit(const ParseError& error) const {
    return parts_->app.exit(CLI::Error(error.kind(), error.what(), error.exit_code()));
}
std::optional<int> App::parse_or_exit(int argc, char** argv) {
    try {
        parse(argc, argv);
    } catch (const ParseError& error) {
        return exit(error);
    }
    return std::nullopt;
}

bool App::parsed() const {
    return parts_->app.parsed();
}
std::string App::get_name() const {
    return parts_->app.get_name();
}

}  // namespace offpath::command_line
