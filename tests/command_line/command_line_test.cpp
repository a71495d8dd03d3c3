// What the layer over CLI11 adds or must not lose: types of options, enums, the limits of wide numbers,
// errors.
#include "command_line/command_line.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace offpath::command_line {
namespace {

// Parses `words` and returns the error's text, or an empty string. The exit code of an error is not 0.
std::string error_of(App& app, std::vector<std::string> words) {
    words.insert(words.begin(), "program");
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    try {
        app.parse(static_cast<int>(words.size()), arguments.data());
    } catch (const ParseError& error) {
        EXPECT_NE(error.exit_code(), 0);
        return error.what();
    }
    return "";
}

template <typename T>
class OptionOf : public testing::Test {};
using Types = testing::Types<int, unsigned, long, unsigned long, double, std::optional<int>,
                             std::optional<double>, std::vector<double>, std::vector<unsigned long>>;
TYPED_TEST_SUITE(OptionOf, Types);

TYPED_TEST(OptionOf, TakesANumberAndRefusesAWord) {
    TypeParam value{};
    App app("about", "program");
    app.add_option("--size", value);
    EXPECT_EQ(error_of(app, {"--size", "7"}), "");
    if constexpr (OneOf<TypeParam, std::vector<double>, std::vector<unsigned long>>)
        EXPECT_EQ(value, TypeParam{7});
    else
        EXPECT_EQ(value, 7);
    EXPECT_NE(error_of(app, {"--size", "seven"}).find("--size"), std::string::npos);
}

enum class Color : std::uint8_t { red = 1, blue = 65 };

TEST(CommandLine, AnEnumIsGivenByItsNamesAndTheHelpShowsNumbers) {
    const std::map<std::string, Color> colors{{"red", Color::red}, {"blue", Color::blue}};
    Color color = Color::red;
    App app("about", "program");
    app.add_option("--color", color)->transform(CheckedTransformer(colors));
    EXPECT_EQ(error_of(app, {"--color", "blue"}), "");
    EXPECT_EQ(color, Color::blue);
    EXPECT_NE(error_of(app, {"--color", "green"}).find("{blue->65,red->1}"), std::string::npos);
    EXPECT_EQ(color, Color::blue);
}

TEST(CommandLine, RangesKeepTheirLimitsWhateverTheirType) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t wide = 0;
    int narrow = 0;
    App app("about", "program");
    app.add_option("--wide", wide)->check(Range(std::uint64_t{1}, most));
    app.add_option("--narrow", narrow)->check(Range(-3, 3));
    EXPECT_EQ(error_of(app, {"--wide", std::to_string(most), "--narrow", "-3"}), "");
    EXPECT_EQ(wide, most);
    EXPECT_EQ(narrow, -3);
    EXPECT_EQ(error_of(app, {"--wide", "0"}), "--wide: Value 0 not in range 1 to 18446744073709551615");
    EXPECT_EQ(error_of(app, {"--narrow", "4294967296"}), "--narrow: Value 4294967296 not in range -3 to 3");
}

TEST(CommandLine, ACheckSeesTheTransformedWordAndDoesNotChangeIt) {
    std::string word;
    App app("about", "program");
    app.add_option("--word", word)
        ->check([](std::string& text) {
            const std::string problem = text == "ab" ? "" : "found " + text;
            text = "changed";
            return problem;
        })
        ->transform([](std::string& text) {
            text += "b";
            return std::string();
        });
    EXPECT_EQ(error_of(app, {"--word", "a"}), "");
    EXPECT_EQ(word, "ab");
    EXPECT_EQ(error_of(app, {"--word", "x"}), "--word: found xb");
}

TEST(CommandLine, SizesHaveSuffixes) {
    EXPECT_EQ(parse_size("3K"), 3072u);
    EXPECT_EQ(parse_size("5"), 5u);
    EXPECT_EQ(parse_size("K"), 1024u);
    EXPECT_EQ(parse_size("5 apples"), std::nullopt);
}

TEST(CommandLine, HelpEndsTheProgramWellAndErrorsDoNot) {
    char program[] = "program", help[] = "--help";
    char* words[] = {program, help, nullptr};
    int count = 4;
    std::string way;
    App app("What it does.", "program");
    app.add_option("--count", count)->check(Range(1, 9))->capture_default_str();
    app.add_option("--way", way)->check(IsMember({"here", "there"}))->required();
    testing::internal::CaptureStdout();
    EXPECT_EQ(app.parse_or_exit(2, words), 0);
    const std::string help_text = testing::internal::GetCapturedStdout();
    for (const char* text :
         {"What it does.", "--count INT:INT in [1 - 9]=4\n", "--way TEXT:{here,there} REQUIRED\n"})
        EXPECT_NE(help_text.find(text), std::string::npos) << text << help_text;
    testing::internal::CaptureStderr();
    EXPECT_NE(app.parse_or_exit(1, words), 0);
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("--way is required"), 0u);
}

}  // namespace
}  // namespace offpath::command_line
