#include "minimd/setup/input_file.h"

#include <sstream>
#include <vector>

#include "messages.h"
#include "minimd/setup/line_source.h"

namespace minimd {
namespace {

const std::vector<std::string> copper = {
    "EAM input file",
    "",
    "metal           units (lj or metal)",
    "none            data file (none or filename)",
    "eam\t            force style (lj or eam)",
    "1.5 2.5\t\tforce parameters for LJ",
    "10 20 30        size of problem",
    "150             timesteps",
    "0.001           timestep size ",
    "600             initial temperature ",
    "7.041125e-2     density ",
    "15              reneighboring every this many steps",
    "4.95 1.00       force cutoff and neighbor skin ",
    "50             thermo calculation every this many steps (0 = start,end)",
};

std::string joined(const std::vector<std::string>& lines, const char* end = "\n") {
    std::string text;
    for (const std::string& line : lines)
        text += line + end;
    return text;
}

Settings parsed(const std::string& text) {
    std::istringstream in(text);
    Settings settings;
    parse_input(in, "in.test", settings);
    return settings;
}

std::string error_with(std::size_t line, const std::string& text) {
    std::vector<std::string> lines = copper;
    lines.at(line - 1) = text;
    return usage_error([&] { parsed(joined(lines)); });
}

void expect_copper(const Settings& settings) {
    EXPECT_EQ(settings.units, Units::metal);
    EXPECT_FALSE(settings.data_file);
    EXPECT_EQ(settings.potential, Potential::eam);
    EXPECT_EQ(settings.epsilon, 1.5);
    EXPECT_EQ(settings.sigma, 2.5);
    EXPECT_EQ(settings.unit_cells, (std::array<int, 3>{10, 20, 30}));
    EXPECT_EQ(settings.steps, 150);
    EXPECT_EQ(settings.timestep, 0.001);
    EXPECT_EQ(settings.temperature, 600.0);
    EXPECT_EQ(settings.density, 0.07041125);
    EXPECT_EQ(settings.reneighbor_every, 15);
    EXPECT_EQ(settings.cutoff, 4.95);
    EXPECT_EQ(settings.skin, 1.0);
    EXPECT_EQ(settings.thermo_every, 50);
}

TEST(InputFile, GivesEveryLinesValue) {
    expect_copper(parsed(joined(copper)));
}

TEST(InputFile, MayComeFromWindows) {
    expect_copper(parsed(joined(copper, "\r\n")));
}

TEST(InputFile, MayEndWithoutALineEnd) {
    std::string text = joined(copper);
    text.pop_back();
    expect_copper(parsed(text));
}

TEST(InputFile, MayNameADataFile) {
    std::vector<std::string> lines = copper;
    lines[3] = "1m.data\tdata file";
    EXPECT_EQ(parsed(joined(lines)).data_file, "1m.data");
}

TEST(InputFile, ErrorsNameFileLineAndExpectation) {
    EXPECT_EQ(error_with(3, "real units"), "in.test:3: expected units, 'lj' or 'metal', found 'real'");
    EXPECT_EQ(error_with(5, "  "), "in.test:5: expected a force style, 'lj' or 'eam', found an empty line");
    EXPECT_EQ(error_with(6, "1.0"), "in.test:6: expected sigma, found '1.0'");
    EXPECT_EQ(error_with(6, "1.0 x"), "in.test:6: expected sigma, found 'x'");
    EXPECT_EQ(error_with(7, "32 32 32.5"),
              "in.test:7: expected the unit cells in z, a whole number, found '32.5'");
    EXPECT_EQ(error_with(7, "32 0 32"), "in.test:7: expected the unit cells in y from 1 to 10000, found '0'");
    EXPECT_EQ(error_with(8, "-1"),
              "in.test:8: expected the number of steps from 0 to 2000000000, found '-1'");
    EXPECT_EQ(error_with(9, "0"), "in.test:9: expected the time step above 0, found '0'");
    EXPECT_EQ(error_with(10, "-5 K"),
              "in.test:10: expected the initial temperature of at least 0, found '-5'");
    EXPECT_EQ(error_with(11, "nan"), "in.test:11: expected the density, found 'nan'");
    EXPECT_EQ(error_with(13, "2.5 -0.1"),
              "in.test:13: expected the neighbour skin of at least 0, found '-0.1'");
    EXPECT_EQ(error_with(12, "0").substr(0, 11), "in.test:12:");
}

TEST(InputFile, ThatIsCutOffSaysWhere) {
    for (std::size_t kept = 0; kept < copper.size(); ++kept) {
        const std::vector<std::string> lines(copper.begin(), copper.begin() + static_cast<long>(kept));
        const std::string message = usage_error([&] { parsed(joined(lines)); });
        EXPECT_EQ(message.find("in.test:" + std::to_string(kept + 1) + ": expected "), 0u) << message;
        EXPECT_NE(message.find("the file ends here"), message.npos) << message;
    }
}

TEST(InputFile, ThatIsAllowedAtTheEdges) {
    std::vector<std::string> lines = copper;
    lines[7] = "0 steps";
    lines[9] = "0 K";
    lines[12] = "4.95 0";
    lines[13] = "0";
    const Settings settings = parsed(joined(lines));
    EXPECT_EQ(settings.steps, 0);
    EXPECT_EQ(settings.temperature, 0.0);
    EXPECT_EQ(settings.skin, 0.0);
    EXPECT_EQ(settings.thermo_every, 0);
}

TEST(LineSource, ReadsNumbersWhole) {
    EXPECT_EQ(to_double("1e3"), 1000.0);
    EXPECT_EQ(to_double("+.5"), 0.5);
    EXPECT_EQ(to_integer("+7"), 7);
    for (const char* word : {"", "1x", "--1", "+-1", "inf", "nan", "1e999", "0x10", "1,5"})
        EXPECT_FALSE(to_double(word)) << word;
    for (const char* word : {"", "1.0", "1e3", "99999999999999999999"})
        EXPECT_FALSE(to_integer(word)) << word;
}

TEST(LineSource, ShortensLongLines) {
    std::istringstream in(std::string(5000, 'x') + "\n");
    LineSource lines(in, "f");
    ASSERT_TRUE(lines.next());
    EXPECT_EQ(usage_error([&] { lines.fail("a number"); }),
              "f:1: expected a number, found '" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace minimd
