#include "minimd/report/dump.h"

#include "messages.h"
#include "minimd/files/distribution.h"
#include "scratch_folder.h"

namespace minimd {
namespace {

class DumpTest : public ScratchFolder {
  protected:
    // Three atoms, dealt to the ranks beginning with the last id.
    System three() const {
        System system;
        system.box = {1.5, 2.0, 10.0 / 3.0};
        system.atoms = 3;
        for (int id = 3; id >= 1; --id)
            if (rank_ == (3 - id) % ranks_)
                append(
                    system.local,
                    {id, (id - 1) % 2, 0, {0.25 * id, 1.0 / 3.0, 0.0}, {-1.0 * id, 1e-20, 12345.678901234}});
        return system;
    }
};

TEST_F(DumpTest, XyzFramesFollowEachOther) {
    write("d.xyz", "what was there before, longer than the frames that follow" + std::string(2000, '.'));
    DumpFile dump("d.xyz", "Cu", 0.005, MPI_COMM_WORLD);
    dump.append(three(), 0);
    dump.append(three(), 200);
    const std::string atoms =
        "Cu 0.25 0.3333333333 0 -1 1e-20 12345.6789 1 1\n"
        "Cu 0.5 0.3333333333 0 -2 1e-20 12345.6789 2 2\n"
        "Cu 0.75 0.3333333333 0 -3 1e-20 12345.6789 3 1\n";
    const std::string head =
        "3\nLattice=\"1.5 0 0 0 2 0 0 0 3.3333333333333335\" Origin=\"0 0 0\" "
        "Properties=species:S:1:pos:R:3:velo:R:3:id:I:1:type:I:1 ";
    EXPECT_EQ(content("d.xyz"), head + "Step=0 Time=0 pbc=\"T T T\"\n" + atoms + head +
                                    "Step=200 Time=1 pbc=\"T T T\"\n" + atoms);
}

TEST_F(DumpTest, LammpsFramesFollowEachOther) {
    DumpFile dump("d.lammpstrj", "Cu", 0.005, MPI_COMM_WORLD);
    dump.append(three(), 7);
    System moved = three();
    for (Vec3& x : moved.local.x)
        x[2] = -0.1 * x[0];
    moved.box[2] = 3.0;
    dump.append(moved, 9);
    EXPECT_EQ(content("d.lammpstrj"),
              "ITEM: TIMESTEP\n7\nITEM: NUMBER OF ATOMS\n3\nITEM: BOX BOUNDS pp pp pp\n0 1.5\n0 2\n"
              "0 3.3333333333333335\nITEM: ATOMS id type x y z vx vy vz\n"
              "1 1 0.25 0.3333333333 0 -1 1e-20 12345.6789\n"
              "2 2 0.5 0.3333333333 0 -2 1e-20 12345.6789\n"
              "3 1 0.75 0.3333333333 0 -3 1e-20 12345.6789\n"
              "ITEM: TIMESTEP\n9\nITEM: NUMBER OF ATOMS\n3\nITEM: BOX BOUNDS pp pp pp\n0 1.5\n0 2\n"
              "0 3\nITEM: ATOMS id type x y z vx vy vz\n"
              "1 1 0.25 0.3333333333 2.975 -1 1e-20 12345.6789\n"
              "2 2 0.5 0.3333333333 2.95 -2 1e-20 12345.6789\n"
              "3 1 0.75 0.3333333333 2.925 -3 1e-20 12345.6789\n");
}

TEST_F(DumpTest, ThatCannotBeWrittenIsAnError) {
    DumpFile dump("no/such/folder/d.xyz", "Cu", 0.005, MPI_COMM_WORLD);
    const std::string message = usage_error([&] { dump.append(three(), 0); });
    EXPECT_EQ(message.find("cannot write 'no/such/folder/d.xyz': "), 0u) << message;
}

TEST(DumpFormat, FollowsTheName) {
    EXPECT_EQ(dump_format_of("a.xyz"), DumpFormat::xyz);
    EXPECT_EQ(dump_format_of("a.b.lammpstrj"), DumpFormat::lammps);
    EXPECT_FALSE(dump_format_of("xyz"));
    EXPECT_FALSE(dump_format_of("a.xyz.gz"));
}

}  // namespace
}  // namespace minimd
