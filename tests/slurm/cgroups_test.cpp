#include "slurm/cgroups.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

// A step that has CPU 0 of a job with CPUs 0 and 1.
class SlurmCgroups : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(root_.data()), nullptr);
        write_cpus("cpuset", "0-7");
        write_cpus("cpuset/slurm/job_1", "0-1");
        write_cpus("cpuset/slurm/job_1/step_0", "0");
        write_cpus("cpuset/slurm", "0-7");
    }

    void TearDown() override { std::filesystem::remove_all(root_); }

    void write_cpus(const std::string& group, const char* cpus) {
        std::filesystem::create_directories(root_ + "/" + group);
        std::ofstream(root_ + "/" + group + "/cpuset.cpus") << cpus << '\n';
    }

    std::vector<std::string> joined(const std::string& list, const char* cpus) {
        static offpath_cgroups_t groups;
        cpu_set_t set;
        offpath_cpus_parse(cpus, &set);
        std::FILE* const file = fmemopen(const_cast<char*>(list.data()), list.size(), "r");
        offpath_cgroups_read(file, root_.c_str(), &set, &groups);
        std::fclose(file);
        std::vector<std::string> found;
        for (int i = 0; i < groups.count; ++i)
            found.push_back(std::string(groups.files[i]).substr(root_.size()));
        return found;
    }

    std::string root_ = std::filesystem::temp_directory_path() / "offpath-cgroups.XXXXXX";
};

using Files = std::vector<std::string>;

TEST_F(SlurmCgroups, TheTasksGroupsAreJoined) {
    const std::string list = "4:memory:/slurm/job_1/step_0\n3:cpuset:/slurm/job_1/step_0\n1:name=systemd:/\n";
    EXPECT_EQ(joined(list, "0"),
              (Files{"/memory/slurm/job_1/step_0/cgroup.procs", "/cpuset/slurm/job_1/step_0/cgroup.procs"}));
}

TEST_F(SlurmCgroups, ACpusetWithoutTheDevicesCoresGivesWayToTheOneAbove) {
    const std::string list = "4:memory:/slurm/job_1/step_0\n3:cpuset:/slurm/job_1/step_0\n";
    EXPECT_EQ(joined(list, "1"),
              (Files{"/memory/slurm/job_1/step_0/cgroup.procs", "/cpuset/slurm/job_1/cgroup.procs"}));
}

TEST_F(SlurmCgroups, TheDeviceStaysInTheJob) {
    // CPU 5 belongs to another job, and no cpuset has CPU 9.
    for (const char* cpus : {"5", "9"})
        EXPECT_EQ(joined("3:cpuset:/slurm/job_1/step_0\n", cpus),
                  (Files{"/cpuset/slurm/job_1/step_0/cgroup.procs"}));
    write_cpus("cpuset/other", "0");
    EXPECT_EQ(joined("3:cpuset:/other\n", "1"), (Files{"/cpuset/other/cgroup.procs"}));
}

TEST_F(SlurmCgroups, TheUnifiedHierarchyHasNoName) {
    EXPECT_EQ(joined("0::/job_1/step_0\n", "1"), (Files{"//job_1/step_0/cgroup.procs"}));
    std::filesystem::create_directory(root_ + "/unified");
    EXPECT_EQ(joined("0::/job_1/step_0\n", "1"), (Files{"/unified/job_1/step_0/cgroup.procs"}));
}

TEST_F(SlurmCgroups, LinesThatAreNotUnderstoodAreLeftOut) {
    EXPECT_EQ(joined("nothing\n1:\n2:cpu\n3:cpu:/\n", "1"), Files{});
    EXPECT_EQ(joined("3:cpu:/" + std::string(5000, 'x') + "\n", "1"), Files{});
}

}  // namespace
