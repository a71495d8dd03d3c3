#include "slurm/cores.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cpu_lists.h"

namespace {

TEST(SlurmCores, ListsAreReadAndWritten) {
    EXPECT_EQ(text_of(set_of("0-3,8")), "0-3,8");
    EXPECT_EQ(text_of(set_of("7\n")), "7");
    EXPECT_EQ(text_of(set_of("3,1,2")), "1-3");
    for (const char* wrong : {"", "x", "1-", "3-1", "1,", "1 2", "99999", "-1"})
        EXPECT_EQ(text_of(set_of(wrong)), "") << wrong;
    char few[4];
    const cpu_set_t set = set_of("0-3,8");
    EXPECT_FALSE(offpath_cpus_format(&set, few, sizeof few));
}

// Cores of one CPU each.
offpath_cores_t simple_cores(int count) {
    offpath_cores_t cores{};
    cores.count = static_cast<size_t>(count);
    for (int i = 0; i < count; ++i)
        CPU_SET(i, &cores.cpus[i]);
    return cores;
}

offpath_device_place_t placed(const offpath_cores_t& cores, const char* step, const char* job,
                              size_t task_cpus, unsigned wanted = 1, const char* of_others = "") {
    const cpu_set_t of_step = set_of(step);
    const cpu_set_t of_job = set_of(job);
    offpath_device_place_t place{};
    const cpu_set_t others = set_of(of_others);
    offpath_device_place(&cores, &of_step, &of_job, &others, task_cpus, wanted, &place);
    return place;
}

TEST(SlurmCores, TheDeviceTakesTheLastCoresThatTasksLeaveFree) {
    const offpath_cores_t cores = simple_cores(8);
    offpath_device_place_t place = placed(cores, "0-3", "0-3", 3);
    EXPECT_EQ(text_of(place.cpus), "3");
    EXPECT_FALSE(place.shared);
    place = placed(cores, "2-7", "0-7", 4, 2);
    EXPECT_EQ(text_of(place.cpus), "6-7");
    EXPECT_FALSE(place.shared);
}

TEST(SlurmCores, CoresOfTheJobOutsideTheStepComeNext) {
    const offpath_device_place_t place = placed(simple_cores(8), "0-3", "0-5", 4);
    EXPECT_EQ(text_of(place.cpus), "5");
    EXPECT_FALSE(place.shared);
}

TEST(SlurmCores, CoresOfOtherStepsAreLeftOut) {
    const offpath_cores_t cores = simple_cores(8);
    EXPECT_EQ(text_of(placed(cores, "0-2", "0-7", 3, 1, "3-5,7").cpus), "6");
    EXPECT_EQ(text_of(placed(cores, "0-2", "0-5", 3, 1, "4-5").cpus), "3");
    const offpath_device_place_t place = placed(cores, "0-2", "0-5", 3, 1, "3-5");
    EXPECT_EQ(text_of(place.cpus), "2");
    EXPECT_TRUE(place.shared);
}

TEST(SlurmCores, WithoutAFreeCoreTheDeviceSharesTheLastOne) {
    const offpath_cores_t cores = simple_cores(8);
    offpath_device_place_t place = placed(cores, "0-3", "0-3", 4);
    EXPECT_EQ(text_of(place.cpus), "3");
    EXPECT_TRUE(place.shared);
    place = placed(cores, "0-1", "0-1", 2, 4);
    EXPECT_EQ(text_of(place.cpus), "0-1");
    EXPECT_TRUE(place.shared);
}

TEST(SlurmCores, AnUnknownAllocationGivesNoCores) {
    EXPECT_EQ(text_of(placed(simple_cores(8), "", "", 2).cpus), "");
}

// Two packages whose CPUs alternate, and two threads for each core.
TEST(SlurmCores, CoresAreCountedPackageByPackage) {
    std::string root = std::filesystem::temp_directory_path() / "offpath-cores.XXXXXX";
    ASSERT_NE(mkdtemp(root.data()), nullptr);
    for (int cpu = 0; cpu < 8; ++cpu) {
        const std::filesystem::path folder = root + "/cpu" + std::to_string(cpu) + "/topology";
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "thread_siblings_list") << cpu % 4 << ',' << cpu % 4 + 4 << '\n';
        std::ofstream(folder / "physical_package_id") << cpu % 2 << '\n';
    }
    offpath_cores_t cores{};
    EXPECT_TRUE(offpath_cores_read(root.c_str(), &cores));
    ASSERT_EQ(cores.count, 4u);
    const char* const expected[] = {"0,4", "2,6", "1,5", "3,7"};
    for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(text_of(cores.cpus[i]), expected[i]);
    // Two CPUs of tasks need one core of two threads, and the device gets both threads of another.
    EXPECT_EQ(text_of(placed(cores, "0-1", "0-1", 2).cpus), "2,6");
    std::filesystem::remove_all(root);
    EXPECT_FALSE(offpath_cores_read(root.c_str(), &cores));
}

}  // namespace
