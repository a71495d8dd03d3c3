#include "minimd/report/snapshots.h"

#include "minimd/files/restart.h"
#include "minimd/setup/lattice.h"
#include "scratch_folder.h"

namespace minimd {
namespace {

class SnapshotsTest : public ScratchFolder {
  protected:
    SnapshotsTest() {
        settings_.unit_cells = {3, 3, 3};
        settings_.steps = 10;
    }
    System lattice() const {
        const Vec3 box = lattice_box(settings_);
        System system = create_lattice(settings_, box, Decomposition(MPI_COMM_WORLD, box));
        system.step = 96;
        return system;
    }
    // Returns the steps at which something is written.
    std::vector<std::int64_t> due() const {
        const Snapshots snapshots(settings_, lattice(), "Ar", MPI_COMM_WORLD);
        std::vector<std::int64_t> steps;
        for (std::int64_t step = 96; step <= 106; ++step)
            if (snapshots.due(step)) steps.push_back(step);
        return steps;
    }

    Settings settings_;
};

using Steps = std::vector<std::int64_t>;

TEST_F(SnapshotsTest, AreDueAsSettingsSay) {
    EXPECT_EQ(due(), Steps{});
    settings_.dump = "d.xyz";
    EXPECT_EQ(due(), (Steps{96, 106}));
    settings_.dump_every = 4;
    EXPECT_EQ(due(), (Steps{96, 100, 104, 106}));
    settings_.dump.reset();
    settings_.restart_to = "r";
    EXPECT_EQ(due(), Steps{106});
    settings_.restart_every = 3;
    EXPECT_EQ(due(), (Steps{99, 102, 105, 106}));
    settings_.restart_every = 4;
    EXPECT_EQ(due(), (Steps{100, 104, 106})) << "not the step it began with";
}

TEST_F(SnapshotsTest, WriteWhatIsDue) {
    settings_.dump = "d.lammpstrj";
    settings_.restart_to = "r";
    settings_.restart_every = 5;
    System system = lattice();
    Snapshots snapshots(settings_, system, "Ar", MPI_COMM_WORLD);
    for (std::int64_t step = 96; step <= 106; ++step) {
        if (!snapshots.due(step)) continue;
        snapshots.write(step, system.local);
        if (step != 96) {
            EXPECT_EQ(RestartFile("r", settings_, MPI_COMM_WORLD).box(), system.box);
        }
    }
    const RestartFile file("r", settings_, MPI_COMM_WORLD);
    const System last = file.read(Decomposition(MPI_COMM_WORLD, file.box()));
    EXPECT_EQ(last.step, 106);
    EXPECT_EQ(last.local.size(), system.local.size());
    const std::string text = content("d.lammpstrj");
    EXPECT_EQ(text.find("ITEM: TIMESTEP\n96\n"), 0u);
    const std::size_t second = text.find("ITEM: TIMESTEP", 1);
    EXPECT_EQ(text.find("ITEM: TIMESTEP\n106\n"), second);
    EXPECT_EQ(text.find("ITEM: TIMESTEP", second + 1), text.npos);
}

}  // namespace
}  // namespace minimd
