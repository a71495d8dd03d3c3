#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "messages.h"
#include "minimd/setup/eam_file.h"

namespace minimd {
namespace {

TEST(Spline, GoesThroughItsKnotsWithAContinuousSlope) {
    std::vector<double> values;
    for (int k = 0; k < 40; ++k)
        values.push_back(std::sin(0.3 * k) + 0.01 * k * k);
    const Spline spline(values, 0.25);
    ASSERT_EQ(spline.rows(), 40);
    for (int k = 0; k < 40; ++k)
        EXPECT_NEAR(spline.at(0.25 * k).value, values[static_cast<std::size_t>(k)], 1e-13);
    constexpr double little = 1e-7;
    for (int k = 1; k < 39; ++k) {
        const double x = 0.25 * k;
        EXPECT_NEAR(spline.at(x - little).slope, spline.at(x + little).slope, 1e-4);
    }
    for (double x = 0.05; x < 9.7; x += 0.11) {
        const double rise = (spline.at(x + little).value - spline.at(x - little).value) / (2 * little);
        EXPECT_NEAR(spline.at(x).slope, rise, 1e-6) << x;
    }
}

TEST(Spline, IsExactForCubicsAwayFromTheEnds) {
    const auto cubic = [](double x) { return 2.0 - x + 0.5 * x * x - 0.125 * x * x * x; };
    const auto slope = [](double x) { return -1.0 + x - 0.375 * x * x; };
    std::vector<double> values;
    for (int k = 0; k < 20; ++k)
        values.push_back(cubic(0.5 * k));
    const Spline spline(values, 0.5);
    for (double x = 1.0; x <= 8.5; x += 0.07) {
        EXPECT_NEAR(spline.at(x).value, cubic(x), 1e-12);
        EXPECT_NEAR(spline.at(x).slope, slope(x), 1e-12);
    }
}

TEST(Spline, EndsWithItsTable) {
    const Spline spline({0.0, 1.0, 4.0, 9.0, 16.0, 25.0}, 1.0);
    EXPECT_EQ(spline.at(-3.0).value, 0.0);
    EXPECT_EQ(spline.at(5.0).value, 25.0);
    EXPECT_EQ(spline.at(1e9).value, 25.0);
    EXPECT_EQ(spline.at(1e9).slope, spline.at(5.0).slope);
}

TEST(Spline, RowsAreCacheLines) {
    const Spline spline(std::vector<double>(9, 1.5), 0.1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(spline.data()) % 64, 0u);
    for (int k = 0; k < 9; ++k) {
        EXPECT_EQ(spline.data()[8 * k + 6], 1.5);
        EXPECT_EQ(spline.data()[8 * k + 7], 0.0);
    }
    EXPECT_THROW(Spline({1.0, 2.0, 3.0, 4.0}, 1.0), std::invalid_argument);
}

TEST(Elements, HaveSymbols) {
    EXPECT_EQ(element_symbol(1), "H");
    EXPECT_EQ(element_symbol(18), "Ar");
    EXPECT_EQ(element_symbol(29), "Cu");
    EXPECT_EQ(element_symbol(47), "Ag");
    EXPECT_EQ(element_symbol(79), "Au");
    EXPECT_EQ(element_symbol(118), "Og");
    EXPECT_EQ(element_symbol(0), "X");
    EXPECT_EQ(element_symbol(119), "X");
}

const std::vector<std::string> small = {
    "a title", "29 63.55 3.615 FCC",      "7 0.5 6 0.25 1.25", "0 1 2", "3 4 5", "6", "1 2 3 4",
    "5 6",     "0.1 0.2 0.3 0.4 0.5 0.6",
};

EamTables parsed(const std::vector<std::string>& lines) {
    std::ostringstream text;
    for (const std::string& line : lines)
        text << line << "\n";
    std::istringstream in(text.str());
    return parse_funcfl(in, "x.eam");
}

std::string error_of_tables_with(std::size_t line, const std::string& text) {
    std::vector<std::string> lines = small;
    lines.at(line - 1) = text;
    return usage_error([&] { parsed(lines); });
}

TEST(EamFile, GivesTablesInOrder) {
    const EamTables tables = parsed(small);
    EXPECT_EQ(tables.atomic_number, 29);
    EXPECT_EQ(tables.mass, 63.55);
    EXPECT_EQ(tables.cutoff, 1.25);
    EXPECT_EQ(tables.frho.rows(), 6);
    EXPECT_EQ(tables.rhor.rows(), 5);
    EXPECT_EQ(tables.frho.at(1.0).value, 2.0);
    EXPECT_EQ(tables.rhor.at(0.5).value, 0.3);
    EXPECT_NEAR(tables.z2r.at(0.5).value, 27.2 * 0.529 * 9.0, 1e-12);
}

TEST(EamFile, ErrorsNameFileLineAndExpectation) {
    EXPECT_EQ(error_of_tables_with(2, "29"), "x.eam:2: expected the mass, found '29'");
    EXPECT_EQ(error_of_tables_with(2, "29 -1"), "x.eam:2: expected the mass above 0, found '-1'");
    EXPECT_EQ(error_of_tables_with(3, "7 0.5 5 0.25 1.25"),
              "x.eam:3: expected the number of distances from 6 to 10000000, found '5'");
    EXPECT_EQ(error_of_tables_with(3, "7 0.5 6 0 1.25"),
              "x.eam:3: expected the spacing of distances above 0, found '0'");
    EXPECT_EQ(error_of_tables_with(5, "3 4 5,"),
              "x.eam:5: expected embedding energies, of which 3 of 7 were read, found '5,'");
    EXPECT_EQ(
        error_of_tables_with(8, "5 6 7"),
        "x.eam:8: expected the last of the 6 values of effective charges to end its line, found '5 6 7'");
    std::vector<std::string> cut(small.begin(), small.end() - 1);
    EXPECT_EQ(usage_error([&] { parsed(cut); }),
              "x.eam:9: expected densities, of which 0 of 6 were read, but the file ends here");
}

TEST(EamFile, HasNoMoreValuesThanItSays) {
    std::vector<std::string> lines = small;
    lines.insert(lines.end(), {"", "fitted by hand"});
    EXPECT_EQ(parsed(lines).cutoff, 1.25);
    lines.push_back(" 0.5 0.25");
    EXPECT_EQ(usage_error([&] { parsed(lines); }),
              "x.eam:" + std::to_string(lines.size()) +
                  ": expected the end of the tables, which line 3 gives 7 + 2 x 6 values, found ' 0.5 0.25'");
}

TEST(EamFile, IsLookedForInTheFoldersOfLammps) {
    setenv("LAMMPS_POTENTIALS", "/a:/b", 1);
    EXPECT_EQ(eam_places("Cu"),
              (std::vector<std::string>{"Cu", "/a/Cu", "/b/Cu", "/usr/share/lammps/potentials/Cu",
                                        "/usr/local/share/lammps/potentials/Cu"}));
    EXPECT_EQ(eam_places("./Cu"), std::vector<std::string>{"./Cu"});
    unsetenv("LAMMPS_POTENTIALS");
    EXPECT_EQ(eam_places("Cu").size(), 3u);
}

// The potential was fitted to copper's cohesive energy and equilibrium: -3.54 eV, 3.615 angstrom.
TEST(EamFile, OfCopperBindsAsCopperDoes) {
    std::string found;
    for (const std::string& place : eam_places("Cu_u6.eam"))
        if (found.empty() && std::filesystem::exists(place)) found = place;
    if (found.empty()) GTEST_SKIP() << "no Cu_u6.eam: install lammps-data";
    std::ifstream in(found);
    const EamTables tables = parse_funcfl(in, found);
    EXPECT_EQ(tables.atomic_number, 29);
    EXPECT_EQ(tables.frho.rows(), 499);
    const auto energy = [&](double a) {
        double density = 0, pairs = 0;
        for (int i = -4; i <= 4; ++i)
            for (int j = -4; j <= 4; ++j)
                for (int k = -4; k <= 4; ++k) {
                    const double r = 0.5 * a * std::sqrt(i * i + j * j + k * k);
                    if ((i + j + k) % 2 != 0 || r == 0.0 || r >= tables.cutoff) continue;
                    density += tables.rhor.at(r).value;
                    pairs += tables.z2r.at(r).value / r;
                }
        return tables.frho.at(density).value + 0.5 * pairs;
    };
    EXPECT_NEAR(energy(3.615), -3.54, 0.005);
    EXPECT_LT(energy(3.615), energy(3.595));
    EXPECT_LT(energy(3.615), energy(3.635));
}

}  // namespace
}  // namespace minimd
