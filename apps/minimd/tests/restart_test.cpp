#include "minimd/files/restart.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "gathered.h"
#include "messages.h"
#include "minimd/files/atom_record.h"
#include "minimd/setup/lattice.h"
#include "minimd/setup/system_source.h"
#include "scratch_folder.h"

namespace minimd {
namespace {

class RestartTest : public ScratchFolder {
  protected:
    RestartTest() { settings_.unit_cells = {5, 3, 4}; }

    System lattice(MPI_Comm comm) const {
        const Vec3 box = lattice_box(settings_);
        System system = create_lattice(settings_, box, Decomposition(comm, box), 2.5);
        system.step = 12345678901;
        return system;
    }
    System read(MPI_Comm comm) const {
        const RestartFile file("r", settings_, comm);
        const Decomposition decomposition(comm, file.box());
        System system = file.read(decomposition);
        for (const Vec3& x : system.local.x)
            EXPECT_TRUE(decomposition.contains(x));
        return system;
    }
    std::string error() const {
        return usage_error([this] { read(MPI_COMM_WORLD); });
    }

    Settings settings_;
};

TEST_F(RestartTest, GivesBackEveryBit) {
    const System system = lattice(MPI_COMM_WORLD);
    write_restart("r", settings_, system, MPI_COMM_WORLD);
    const System again = read(MPI_COMM_WORLD);
    EXPECT_EQ(again.box, system.box);
    EXPECT_EQ(again.atoms, system.atoms);
    EXPECT_EQ(again.types, system.types);
    EXPECT_EQ(again.mass, 2.5);
    EXPECT_EQ(again.density, system.density);
    EXPECT_EQ(again.step, 12345678901);
    EXPECT_EQ(again.local.size(), system.local.size());
    EXPECT_EQ(gathered(again.local, MPI_COMM_WORLD), gathered(system.local, MPI_COMM_WORLD));
    EXPECT_FALSE(std::filesystem::exists("r.partial"));
}

TEST_F(RestartTest, IsTheSameFileFromAnyNumberOfRanks) {
    write_restart("r", settings_, lattice(MPI_COMM_WORLD), MPI_COMM_WORLD);
    const std::string by_all = content("r");
    EXPECT_EQ(by_all.size(), 128u + 240u * 64u);
    if (rank_ == 0) write_restart("r", settings_, lattice(MPI_COMM_SELF), MPI_COMM_SELF);
    EXPECT_TRUE(content("r") == by_all);
    // Any number of ranks can read it, too.
    const auto atoms = gathered(lattice(MPI_COMM_SELF).local, MPI_COMM_SELF);
    EXPECT_EQ(gathered(read(MPI_COMM_WORLD).local, MPI_COMM_WORLD), atoms);
    EXPECT_EQ(gathered(read(MPI_COMM_SELF).local, MPI_COMM_SELF), atoms);
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(RestartTest, WrapsAtomsThatLeftTheBox) {
    System system = lattice(MPI_COMM_WORLD);
    const auto before = gathered(system.local, MPI_COMM_WORLD);
    for (Vec3& x : system.local.x) {
        x[0] += system.box[0];
        x[2] -= system.box[2];
    }
    write_restart("r", settings_, system, MPI_COMM_WORLD);
    for (const auto& [id, atom] : gathered(read(MPI_COMM_WORLD).local, MPI_COMM_WORLD))
        for (std::size_t d = 0; d < 3; ++d)
            EXPECT_NEAR(std::abs(atom.x[d] - before.at(id).x[d]), 0.0, 1e-13);
}

TEST_F(RestartTest, EveryDamagedByteIsSeen) {
    write_restart("r", settings_, lattice(MPI_COMM_WORLD), MPI_COMM_WORLD);
    const std::string good = content("r");
    for (const std::size_t at :
         {0u, 9u, 13u, 17u, 40u, 60u, 90u, 100u, 112u, 127u, 128u, 200u, 8000u, 15487u}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        write("r", bad);
        const std::string message = error();
        EXPECT_EQ(message.find("cannot go on from 'r': it"), 0u) << at << ": " << message;
    }
    // The values of two atoms are swapped.
    std::string swapped = good;
    std::swap_ranges(swapped.begin() + 128 + 16, swapped.begin() + 128 + 64, swapped.begin() + 128 + 64 + 16);
    write("r", swapped);
    EXPECT_EQ(error(), "cannot go on from 'r': its atoms are damaged");
}

// The checksums of these files are right.
TEST_F(RestartTest, ValuesThatNoSimulationHasAreRefused) {
    const auto written = [&](const std::function<void(System&)>& change) {
        System system = lattice(MPI_COMM_WORLD);
        change(system);
        write_restart("r", settings_, system, MPI_COMM_WORLD);
        return error();
    };
    const double not_a_number = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(written([](System&) {}), "");
    const std::string header = "cannot go on from 'r': its header is damaged";
    EXPECT_EQ(written([](System& system) { system.step = -1; }), header);
    EXPECT_EQ(written([](System& system) { system.mass = 0; }), header);
    EXPECT_EQ(written([&](System& system) { system.density = not_a_number; }), header);
    const std::string atoms = "cannot go on from 'r': its atoms are damaged";
    EXPECT_EQ(written([](System& system) { system.types = 1; }), atoms);
    EXPECT_EQ(written([&](System& system) {
                  for (Vec3& v : system.local.v)
                      v[1] = not_a_number;
              }),
              atoms);
}

TEST_F(RestartTest, ATruncatedOrForeignFileIsSeen) {
    write_restart("r", settings_, lattice(MPI_COMM_WORLD), MPI_COMM_WORLD);
    const std::string good = content("r");
    write("r", good.substr(0, good.size() - 1));
    EXPECT_EQ(error(), "cannot go on from 'r': it has 15487 bytes, but its 240 atoms need 15488");
    write("r", good + "x");
    EXPECT_EQ(error(), "cannot go on from 'r': it has 15489 bytes, but its 240 atoms need 15488");
    write("r", good.substr(0, 100));
    EXPECT_EQ(error(), "cannot go on from 'r': it has 100 bytes, its header alone 128");
    write("r", std::string(4000, 'x'));
    EXPECT_EQ(error(), "cannot go on from 'r': it is no restart file of minimd");
    std::string foreign = good;
    std::reverse(foreign.begin() + 8, foreign.begin() + 12);
    write("r", foreign);
    EXPECT_EQ(error(), "cannot go on from 'r': it was written by a machine with another order of bytes");
    EXPECT_EQ(usage_error([this] { RestartFile("nowhere", settings_, MPI_COMM_WORLD); }),
              "cannot go on from 'nowhere': it cannot be opened");
}

TEST_F(RestartTest, OfAnotherPotentialIsRefused) {
    write_restart("r", settings_, lattice(MPI_COMM_WORLD), MPI_COMM_WORLD);
    settings_.potential = Potential::eam;
    settings_.units = Units::metal;
    EXPECT_EQ(error(),
              "cannot go on from 'r': it was written with units lj and force lj, this run has metal and eam");
}

TEST_F(RestartTest, ThatCannotBeWrittenIsAnError) {
    const System system = lattice(MPI_COMM_WORLD);
    const std::string message =
        usage_error([&] { write_restart("no/such/folder/r", settings_, system, MPI_COMM_WORLD); });
    EXPECT_EQ(message.find("cannot write 'no/such/folder/r.partial': "), 0u) << message;
}

TEST_F(RestartTest, LostAndDoubledAtomsAreSeen) {
    for (const int change : {0, 1, 2}) {
        System system = lattice(MPI_COMM_WORLD);
        const auto found = std::find(system.local.id.begin(), system.local.id.end(), 77);
        if (found != system.local.id.end()) {
            if (change == 0) *found = 78;
            if (change == 1) *found = 999;
            if (change == 2)
                append(system.local,
                       record_of(system.local, static_cast<std::size_t>(found - system.local.id.begin())));
        }
        try {
            write_restart("r", settings_, system, MPI_COMM_WORLD);
            ADD_FAILURE() << "no error";
        } catch (const std::runtime_error& error) {
            EXPECT_NE(std::string(error.what()).find(change == 2 ? "id 78 of" : "id 77 of"),
                      std::string::npos)
                << error.what();
        }
    }
}

TEST_F(RestartTest, IsASource) {
    write_restart("r", settings_, lattice(MPI_COMM_WORLD), MPI_COMM_WORLD);
    settings_.restart_from = "r";
    const auto source = open_source(settings_, MPI_COMM_WORLD);
    const System system = source->load(Decomposition(MPI_COMM_WORLD, source->box()));
    EXPECT_EQ(system.step, 12345678901);
    EXPECT_EQ(system.mass, 2.5);
}

}  // namespace
}  // namespace minimd
