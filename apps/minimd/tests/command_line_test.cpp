#include "minimd/setup/command_line.h"

#include <gtest/gtest.h>

#include "command_line/command_line.h"
#include "messages.h"
#include "scratch_folder.h"

namespace minimd {
namespace {

class CommandLineTest : public ScratchFolder {
  protected:
    static Settings parsed(std::vector<std::string> words) {
        words.insert(words.begin(), "minimd");
        std::vector<char*> argv;
        for (std::string& word : words)
            argv.push_back(word.data());
        std::vector<char*> arguments = with_double_dashes(static_cast<int>(argv.size()), argv.data());
        EXPECT_EQ(arguments.back(), nullptr);
        cli::App app("test", "minimd");
        const CommandLine line(app);
        app.parse(static_cast<int>(arguments.size()) - 1, arguments.data());
        return line.settings(MPI_COMM_WORLD);
    }

    // Returns the parser's exit code if it ends the program, and nothing if the program goes on.
    static std::optional<int> exit_code(const std::vector<std::string>& words) {
        try {
            parsed(words);
        } catch (const cli::ParseError& error) {
            return error.exit_code();
        }
        return std::nullopt;
    }
};

using Cells = std::array<int, 3>;

const std::string input = "title\n\nlj\nnone\nlj\n1.0 1.0\n10 11 12\n77\n0.004\n1.2\n0.9\n10\n2.4 0.2\n5\n";

TEST_F(CommandLineTest, WithoutInputFileItsValuesAreBuiltIn) {
    const Settings settings = parsed({});
    EXPECT_EQ(settings.input_file, "in.lj.miniMD");
    EXPECT_EQ(settings.unit_cells, (Cells{32, 32, 32}));
    EXPECT_EQ(settings.steps, 100);
    EXPECT_EQ(settings.timestep, 0.005);
    EXPECT_EQ(settings.temperature, 1.44);
    EXPECT_EQ(settings.density, 0.8442);
    EXPECT_EQ(settings.reneighbor_every, 20);
    EXPECT_EQ(settings.cutoff, 2.5);
    EXPECT_EQ(settings.skin, 0.3);
    EXPECT_EQ(settings.thermo_every, 100);
    ASSERT_EQ(settings.notes.size(), 1u);
    EXPECT_NE(settings.notes[0].find("there is no in.lj.miniMD here"), std::string::npos);
}

TEST_F(CommandLineTest, TheDefaultInputFileIsReadWhereItIs) {
    write("in.lj.miniMD", input);
    const Settings settings = parsed({});
    EXPECT_EQ(settings.unit_cells, (Cells{10, 11, 12}));
    EXPECT_TRUE(settings.notes.empty());
}

TEST_F(CommandLineTest, FlagsReplaceWhatTheInputFileSays) {
    write("in.mine", input);
    const Settings plain = parsed({"-i", "in.mine"});
    EXPECT_EQ(plain.steps, 77);
    EXPECT_EQ(plain.input_file, "in.mine");
    const Settings settings =
        parsed({"--input_file", "in.mine", "-n", "0", "-u", "metal", "-p", "eam", "-f", "x.data"});
    EXPECT_EQ(settings.steps, 0);
    EXPECT_EQ(settings.units, Units::metal);
    EXPECT_EQ(settings.potential, Potential::eam);
    EXPECT_EQ(settings.data_file, "x.data");
    EXPECT_EQ(settings.unit_cells, (Cells{10, 11, 12}));
    EXPECT_EQ(settings.cutoff, 2.4);
}

TEST_F(CommandLineTest, SizesWorkAsInMiniMD) {
    write("in.lj.miniMD", input);
    EXPECT_EQ(parsed({"-s", "8"}).unit_cells, (Cells{8, 8, 8}));
    EXPECT_EQ(parsed({"--size", "8", "-nx", "4"}).unit_cells, (Cells{4, 8, 8}));
    EXPECT_EQ(parsed({"-nx", "4"}).unit_cells, (Cells{4, 4, 4}));
    EXPECT_EQ(parsed({"-nx", "4", "-nz", "6"}).unit_cells, (Cells{4, 4, 6}));
    EXPECT_EQ(parsed({"-ny", "5"}).unit_cells, (Cells{10, 5, 12}));
    EXPECT_EQ(parsed({"-s", "8", "-s", "9"}).unit_cells, (Cells{9, 9, 9})) << "the last one counts";
}

TEST_F(CommandLineTest, TakesEveryFlagOfMiniMD) {
    const Settings settings = parsed({"-t",
                                      "3",
                                      "--teams",
                                      "2",
                                      "--half_neigh",
                                      "-1",
                                      "-gn",
                                      "0",
                                      "-b",
                                      "7",
                                      "--sort",
                                      "0",
                                      "--ntypes",
                                      "6",
                                      "--check_exchange",
                                      "--safe_exchange",
                                      "-o",
                                      "1",
                                      "--yaml_screen",
                                      "-sse",
                                      "1",
                                      "-d",
                                      "0",
                                      "-dm",
                                      "-ng",
                                      "2",
                                      "--skip_gpu",
                                      "1"});
    EXPECT_EQ(settings.threads, 3);
    EXPECT_EQ(settings.half_neigh, -1);
    EXPECT_EQ(settings.list_kind(), ListKind::half);
    EXPECT_FALSE(settings.ghost_newton);
    EXPECT_EQ(settings.bins, 7);
    EXPECT_EQ(settings.sort_interval(), 0);
    EXPECT_EQ(settings.types, 6);
    EXPECT_TRUE(settings.check_exchange);
    EXPECT_TRUE(settings.safe_exchange);
    EXPECT_EQ(settings.yaml_output, 1);
    EXPECT_TRUE(settings.yaml_screen);
    EXPECT_EQ(settings.notes.size(), 7u) << "built-in input, five flags without effect, teams";
    EXPECT_EQ(parsed({"--half_neigh", "0", "--ghost_newton", "1", "--num_threads", "2"}).list_kind(),
              ListKind::full);
    EXPECT_EQ(parsed({}).sort_interval(), 20);
}

TEST_F(CommandLineTest, TakesOurFlags) {
    const Settings settings = parsed(
        {"--precision",     "single", "--offpath",    "balanced", "--tunnel",        "--split-boundary",
         "--intensity",     "4",      "--json",       "-",        "--write-restart", "r",
         "--restart-every", "10",     "--dump",       "d.xyz",    "--dump-every",    "5",
         "--eam-file",      "Ni",     "--skin-check", "error"});
    EXPECT_EQ(settings.precision, Precision::single_precision);
    EXPECT_EQ(settings.offpath, OffPath::balanced);
    EXPECT_TRUE(settings.tunnel);
    EXPECT_TRUE(settings.split_boundary);
    EXPECT_EQ(settings.intensity, 4);
    EXPECT_TRUE(settings.quiet());
    EXPECT_EQ(settings.restart_to, "r");
    EXPECT_EQ(settings.restart_every, 10);
    EXPECT_EQ(settings.dump, "d.xyz");
    EXPECT_EQ(settings.dump_every, 5);
    EXPECT_EQ(settings.eam_file, "Ni");
    EXPECT_EQ(settings.skin_check, SkinCheck::error);
}

TEST_F(CommandLineTest, ARestartReplacesTheDataFile) {
    const Settings settings = parsed({"--restart", "old", "-f", "x.data"});
    EXPECT_EQ(settings.restart_from, "old");
    EXPECT_FALSE(settings.data_file);
    EXPECT_EQ(settings.notes.size(), 2u);
}

TEST_F(CommandLineTest, NumbersAreDecimal) {
    EXPECT_EQ(parsed({"-n", "010"}).steps, 10);
    EXPECT_EQ(parsed({"-s", "+08"}).unit_cells, (Cells{8, 8, 8}));
    EXPECT_EQ(parsed({"--sort", "-1"}).sort_interval(), 20) << "miniMD's default";
}

TEST_F(CommandLineTest, SaysWhatIsWithoutEffect) {
    write("in.lj.miniMD", input);
    EXPECT_EQ(parsed({"-f", "x.data"}).notes, std::vector<std::string>{});
    EXPECT_EQ(parsed({"-f", "x.data", "-nz", "4"}).notes,
              std::vector<std::string>{
                  "unit cells (-s, -nx, -ny, -nz) are without effect: the atoms come from x.data"});
    EXPECT_EQ(parsed({"--yaml_screen"}).notes,
              std::vector<std::string>{"--yaml_screen is without effect: -o 1 is not there"});
    EXPECT_EQ(parsed({"--team_neigh", "1"}).notes.size(), 1u);
}

TEST_F(CommandLineTest, RefusesWhatMakesNoSense) {
    const std::vector<std::vector<std::string>> wrong = {{"-s", "0"},
                                                         {"-n", "-1"},
                                                         {"-t", "0"},
                                                         {"--half_neigh", "2"},
                                                         {"-u", "real"},
                                                         {"-p", "tersoff"},
                                                         {"--ntypes", "0"},
                                                         {"-b", "0"},
                                                         {"--sort", "-2"},
                                                         {"-n", "0x10"},
                                                         {"-n", "3.0"},
                                                         {"-n", ""},
                                                         {"-n", "99999999999999999999"},
                                                         {"--device-share", "nan"},
                                                         {"--device-share", "1.1"},
                                                         {"--precision", "half"},
                                                         {"--dump", "x.pdb"},
                                                         {"--dump-every", "5"},
                                                         {"--restart-every", "5"},
                                                         {"-n", "ten"},
                                                         {"--unknown"},
                                                         {"stray"},
                                                         {"--intensity", "0"},
                                                         {"--offpath", "yes"},
                                                         {"-n"},
                                                         {"-gn", "maybe"}};
    for (const std::vector<std::string>& words : wrong)
        EXPECT_GT(exit_code(words), 0) << testing::PrintToString(words);
    EXPECT_EQ(exit_code({"-h"}), 0);
}

TEST_F(CommandLineTest, AMissingInputFileIsNamedOnEveryRank) {
    EXPECT_EQ(usage_error([] { parsed({"-i", "nowhere"}); }), "cannot read the input file 'nowhere'");
    EXPECT_EQ(usage_error([] { parsed({"-i", "."}); }), "cannot read the input file '.'");
    write("in.empty", "");
    EXPECT_EQ(usage_error([] {
                  parsed({"-i", "in.empty"});
              }),
              "in.empty:1: expected a title, but the file ends here");
}

}  // namespace
}  // namespace minimd
