#include "minimd/setup/data_file.h"

#include <fmt/format.h>

#include "gathered.h"
#include "messages.h"
#include "minimd/setup/system_source.h"
#include "scratch_folder.h"

namespace minimd {
namespace {

// 6 atoms; lines are numbered from 1.
const std::vector<std::string> lines = {
    "LAMMPS data file",                     // 1
    "",                                     // 2
    "6 atoms",                              // 3
    "2 atom types   # of one mass",         // 4
    "0 bonds",                              // 5
    "",                                     // 6
    "-1.0 9.0 xlo xhi",                     // 7
    "0 20 ylo yhi",                         // 8
    "5 35 zlo zhi",                         // 9
    "0 0 0 xy xz yz",                       // 10
    "",                                     // 11
    "Masses",                               // 12
    "",                                     // 13
    "1 63.55 # Cu",                         // 14
    "2 63.55",                              // 15
    "",                                     // 16
    "Pair Coeffs # lj/cut",                 // 17
    "",                                     // 18
    "1 1.0 1.0",                            // 19
    "2 1.0 1.0",                            // 20
    "",                                     // 21
    "Atoms # atomic",                       // 22
    "",                                     // 23
    "3 1 0.0 1.0 5.0",                      // 24
    "1 2 -1.0 19.5 34.9 0 0 -1  # images",  // 25
    "2 1 8.999 0 20 0 0 0",                 // 26
    "6 2 9.0 20.0 35.0 1 1 1",              // 27
    "5 1 -2.5 -0.25 0.5",                   // 28
    "4 1 4 10 20",                          // 29
    "",                                     // 30
    "Velocities",                           // 31
    "",                                     // 32
    "1 0.1 0.2 0.3",                        // 33
    "2 1 2 3",                              // 34
    "4 4 5 6",                              // 35
    "3 -1 -2 -3",                           // 36
    "6 6 6 6",                              // 37
    "5 1e-3 0 0",                           // 38
};

class DataFileTest : public ScratchFolder {
  protected:
    // Writes the file with some lines replaced, and cut off after `kept` lines.
    void put(const std::map<std::size_t, std::string>& changes = {}, std::size_t kept = lines.size()) const {
        std::string text;
        for (std::size_t i = 1; i <= kept; ++i)
            text += (changes.contains(i) ? changes.at(i) : lines[i - 1]) + "\n";
        write("x.data", text);
    }
    static System read(std::vector<std::string>* notes = nullptr) {
        DataFile file("x.data", MPI_COMM_WORLD);
        const Decomposition decomposition(MPI_COMM_WORLD, file.box());
        std::vector<std::string> said;
        System system = file.read(decomposition, said);
        for (const Vec3& x : system.local.x)
            EXPECT_TRUE(decomposition.contains(x));
        if (notes != nullptr) *notes = said;
        return system;
    }
    std::string error_with(const std::map<std::size_t, std::string>& changes,
                           std::size_t kept = lines.size()) const {
        put(changes, kept);
        return usage_error([] { read(); });
    }
};

TEST_F(DataFileTest, GivesEveryAtomToOneRank) {
    put();
    std::vector<std::string> notes;
    const System system = read(&notes);
    EXPECT_EQ(system.atoms, 6);
    EXPECT_EQ(system.types, 2);
    EXPECT_EQ(system.mass, 63.55);
    EXPECT_EQ(system.box, (Vec3{10, 20, 30}));
    EXPECT_EQ(system.density, 0.001);
    std::int64_t count = static_cast<std::int64_t>(system.local.size());
    MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(count, 6);
    const auto atoms = gathered(system.local, MPI_COMM_WORLD);
    ASSERT_EQ(atoms.size(), 6u);
    EXPECT_EQ(atoms.at(1), (Atom{1, 1, {0.0, 19.5, 34.9 - 5.0}, {0.1, 0.2, 0.3}}));
    EXPECT_EQ(atoms.at(3), (Atom{3, 0, {1.0, 1.0, 0.0}, {-1, -2, -3}}));
    EXPECT_EQ(atoms.at(6), (Atom{6, 1, {0.0, 0.0, 0.0}, {6, 6, 6}}))
        << "the upper side of the box is the lower one";
    EXPECT_EQ(atoms.at(5), (Atom{5, 0, {8.5, 19.75, 25.5}, {1e-3, 0, 0}})) << "outside the box";
    EXPECT_EQ(notes, std::vector<std::string>{"x.data:17: section 'Pair Coeffs' skipped"});
}

TEST_F(DataFileTest, MayEndAfterAtoms) {
    put({{22, "Atoms"}}, 29);
    const auto atoms = gathered(read().local, MPI_COMM_WORLD);
    ASSERT_EQ(atoms.size(), 6u);
    for (const auto& [_, atom] : atoms)
        EXPECT_EQ(atom.v, Vec3{});
}

TEST_F(DataFileTest, MayComeFromWindows) {
    std::string text;
    for (const std::string& line : lines)
        text += line + "\r\n";
    write("x.data", text);
    EXPECT_EQ(gathered(read().local, MPI_COMM_WORLD).size(), 6u);
}

TEST_F(DataFileTest, ErrorsNameFileLineAndExpectation) {
    const std::map<std::size_t, std::pair<std::string, std::string>> wrong = {
        {3, {"6.5 atoms", "the number of atoms, a whole number, found '6.5'"}},
        {4, {"0 atom types", "the number of atom types from 1 to 1024, found '0'"}},
        {5, {"3 bonds", "bonds, of which miniMD has none, from 0 to 0, found '3'"}},
        {6,
         {"hello world",
          "a line of the header (N atoms, N atom types, LO HI xlo xhi, ...) or the title of a section, found "
          "'hello world'"}},
        {7, {"9 9 xlo xhi", "an upper bound above the lower one, found '9 9 xlo xhi'"}},
        {8, {"0 x ylo yhi", "the upper bound, found 'x'"}},
        {10, {"1 0 0 xy xz yz", "a box without tilt, found '1 0 0 xy xz yz'"}},
        {14, {"1 0", "a mass above 0, found '0'"}},
        {15, {"2 58.7", "the mass of the types before, as miniMD has one for all, found '58.7'"}},
        {17, {"Bonnds", "the title of a section, found 'Bonnds'"}},
        {22, {"Atoms # full", "atoms of the style atomic, found 'full'"}},
        {24, {"7 1 0 0 0", "an id from 1 to 6, found '7'"}},
        {25, {"1 3 0 0 0", "a type from 1 to 2, found '3'"}},
        {26, {"2 1 0.5 0 0 0", "id, type, x, y, z and maybe three image flags, found '2 1 0.5 0 0 0'"}},
        {27, {"6 2 9.0 20.0 nan", "a position, found 'nan'"}},
        {28, {"3 1 0 0 0", "each atom once, found '3'"}},
        {29,
         {"Velocities", "atom 6 of 6 (id, type, x, y, z and maybe three image flags), found 'Velocities'"}},
        {30, {"7 1 0 0 0", "the title of a section, found '7 1 0 0 0'"}},
        {33, {"1 0.1 0.2", "id, vx, vy and vz, found '1 0.1 0.2'"}},
        {34, {"1 1 2 3", "each velocity once, found '1'"}},
    };
    for (const auto& [line, change] : wrong)
        EXPECT_EQ(error_with({{line, change.first}}),
                  fmt::format("x.data:{}: expected {}", line, change.second));
    EXPECT_EQ(error_with({{22, "Velocities"}}),
              "x.data:22: expected the section Atoms before this one, found 'Velocities'");
    EXPECT_EQ(error_with({{31, "Atoms"}}), "x.data:31: expected one section Atoms, found 'Atoms'");
    EXPECT_EQ(error_with({{3, ""}}),
              "x.data:12: expected the number of atoms ('N atoms') before this, found 'Masses'");
    EXPECT_EQ(error_with({{9, ""}}),
              "x.data:12: expected the bounds of the box ('LO HI zlo zhi') before this, found 'Masses'");
}

TEST_F(DataFileTest, TakesTheHeaderAtItsWord) {
    EXPECT_EQ(error_with({{5, "0 bond types"}}), "");
    EXPECT_NE(error_with({{5, "2 atoms types"}}).find("x.data:5: expected a line of the header"),
              std::string::npos);
}

TEST_F(DataFileTest, RefusesNumbersThatLeadNowhere) {
    EXPECT_EQ(error_with({{7, "-1e308 1e308 xlo xhi"}}),
              "x.data:7: expected bounds whose difference is a number, found '-1e308 1e308 xlo xhi'");
    const std::string far = error_with({{29, "4 1 4 -1e8 20"}});
    EXPECT_EQ(far, "x.data:29: expected a position within a million boxes of this one, found '-1e8'");
    // No memory is reserved for atoms that do not arrive.
    EXPECT_NE(error_with({{3, "900000000000 atoms"}}).find(" of 900000000000 (id"), std::string::npos);
}

TEST_F(DataFileTest, ThatIsCutOffSaysWhere) {
    for (const std::size_t kept : {0u, 1u, 5u, 10u, 11u, 14u, 20u, 23u, 26u, 31u, 32u, 35u}) {
        const std::string message = error_with({}, kept);
        EXPECT_EQ(message.find("x.data:" + std::to_string(kept + 1) + ": expected "), 0u) << message;
        EXPECT_NE(message.find("but the file ends here"), message.npos) << message;
    }
}

TEST_F(DataFileTest, ThatIsNotThereIsNamed) {
    EXPECT_EQ(usage_error([] { DataFile("nowhere", MPI_COMM_WORLD); }),
              "cannot read the data file 'nowhere'");
    EXPECT_EQ(usage_error([] { DataFile(".", MPI_COMM_WORLD); }), "cannot read the data file '.'");
}

// The file has more atoms than fit into one chunk.
TEST_F(DataFileTest, MayBeLong) {
    constexpr int atoms = 40000;
    std::string text = fmt::format(
        "big\n\n{} atoms\n1 atom types\n0 1 xlo xhi\n0 1 ylo yhi\n0 1 zlo zhi\n\nAtoms\n\n", atoms);
    for (int id = atoms; id > 0; --id)
        text += fmt::format("{} 1 {} 0.5 0.5\n", id, id / 40001.0);
    text += "\nVelocities\n\n";
    for (int id = 1; id <= atoms; ++id)
        text += fmt::format("{} {} 0 0\n", id, id);
    write("x.data", text);
    const auto all = gathered(read().local, MPI_COMM_WORLD);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(atoms));
    for (const auto& [id, atom] : all) {
        EXPECT_EQ(atom.x[0], static_cast<double>(id) / 40001.0);
        EXPECT_EQ(atom.v[0], static_cast<double>(id));
    }
}

TEST_F(DataFileTest, IsASourceWhoseMassThePotentialReplaces) {
    put();
    Settings settings;
    settings.data_file = "x.data";
    for (const std::optional<double> mass : {std::optional<double>(), std::optional<double>(108.0)}) {
        const auto source = open_source(settings, MPI_COMM_WORLD, mass);
        const System system = source->load(Decomposition(MPI_COMM_WORLD, source->box()));
        EXPECT_EQ(system.mass, mass.value_or(63.55));
        EXPECT_EQ(source->notes().size(), 1u);
    }
}

}  // namespace
}  // namespace minimd
