#include "minimd/report/outputs.h"

#include <sys/stat.h>

#include "messages.h"
#include "scratch_folder.h"

namespace minimd {
namespace {

class OutputsTest : public ScratchFolder {
  protected:
    OutputsTest() {
        settings_.json = "r.json";
        settings_.dump = "d.xyz";
        settings_.restart_to = "r";
    }
    std::string problem() const {
        const std::string message = usage_error([this] { check_outputs(settings_, MPI_COMM_WORLD); });
        MPI_Barrier(MPI_COMM_WORLD);
        return message;
    }
    void make(const std::string& folder) const {
        if (rank_ == 0) std::filesystem::create_directory(folder);
        MPI_Barrier(MPI_COMM_WORLD);
    }

    Settings settings_;
};

TEST_F(OutputsTest, LeaveNothingBehindAndTouchNothing) {
    settings_.yaml_output = 1;
    write("d.xyz", "old");
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(content("d.xyz"), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator("."), {}), 1);
}

TEST_F(OutputsTest, NeedAFolder) {
    settings_.json = "no/r.json";
    EXPECT_EQ(
        problem(),
        "--json: cannot write 'no/r.json' (No such file or directory): give a path in a folder that exists "
        "and is writable");
    settings_.json = "";
    EXPECT_NE(problem().find("--json: cannot write ''"), std::string::npos);
    settings_.json = ".";
    EXPECT_NE(problem().find("--json: cannot write '.' (Is a directory)"), std::string::npos);
    settings_.json = "-";
    EXPECT_EQ(problem(), "");
    settings_.restart_to = "no/r";
    EXPECT_NE(problem().find("--write-restart: cannot write 'no/r'"), std::string::npos);
    settings_.restart_to = "r";
    make("r.partial");
    EXPECT_NE(problem().find("--write-restart: cannot write 'r.partial'"), std::string::npos);
}

TEST_F(OutputsTest, AreDifferentFiles) {
    settings_.restart_to = "./d.xyz";
    EXPECT_EQ(problem(), "--write-restart and --dump name the same file, './d.xyz'");
    settings_.restart_to = settings_.dump = settings_.json = "/dev/null";
    settings_.restart_to.reset();
    EXPECT_EQ(problem(), "");
}

TEST_F(OutputsTest, AreNoInputs) {
    settings_.json = "in.mine";
    settings_.input_file = "in.mine";
    EXPECT_EQ(problem(), "--json would overwrite 'in.mine', which this run reads (-i)");
    settings_.json = "r.json";
    settings_.data_file = "../" + std::filesystem::current_path().filename().string() + "/d.xyz";
    EXPECT_EQ(problem(), "--dump would overwrite 'd.xyz', which this run reads (-f)");
    settings_.data_file.reset();
    settings_.restart_from = "r";
    EXPECT_EQ(problem(), "") << "a run may replace what it went on from";
    settings_.json = "r";
    settings_.restart_to.reset();
    EXPECT_EQ(problem(), "--json would overwrite 'r', which this run reads (--restart)");
}

TEST_F(OutputsTest, LeavePipesToTheirReaders) {
    if (rank_ == 0) mkfifo("r.json", 0600);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(problem(), "");
}

}  // namespace
}  // namespace minimd
