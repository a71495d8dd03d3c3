// What limits device memory: the system, the control groups, and what was given before.
#include "target/host/device_memory.h"
#include "target/host/memory_left.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace offpath::target {
namespace {

constexpr std::uint64_t mib = 1 << 20;

// A file system that has only what the tests write.
struct Root {
    Root() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
    ~Root() { std::filesystem::remove_all(path); }
    Root(const Root&) = delete;
    Root& operator=(const Root&) = delete;
    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path where(path + file);
        std::filesystem::create_directories(where.parent_path());
        std::ofstream(where) << text;
    }
    std::string path = testing::TempDir() + "offpath-root.XXXXXX";
};

TEST(MemoryLeft, IsWhatTheSystemSays) {
    const Root root;
    EXPECT_EQ(memory_left(root.path), UINT64_MAX);
    root.write("/proc/meminfo", "MemTotal: 4096 kB\nMemFree: 100 kB\nMemAvailable: 2048 kB\n");
    EXPECT_EQ(memory_left(root.path), 2 * mib);
}

TEST(MemoryLeft, IsWhatTheTightestGroupLeaves) {
    const Root root;
    root.write("/proc/meminfo", "MemAvailable: 1048576 kB\n");
    root.write("/proc/self/cgroup", "0::/job/step\n");
    root.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    root.write("/sys/fs/cgroup/job/memory.max", std::to_string(64 * mib) + "\n");
    root.write("/sys/fs/cgroup/job/memory.current", std::to_string(40 * mib) + "\n");
    EXPECT_EQ(memory_left(root.path), 24 * mib);
    root.write("/sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file " + std::to_string(10 * mib) + "\n");
    EXPECT_EQ(memory_left(root.path), 34 * mib);
}

TEST(MemoryLeft, KnowsTheOlderGroups) {
    const Root root;
    root.write("/proc/self/cgroup", "5:cpu:/a\n4:devices,memory:/docker/x\n0::/\n");
    // In a container the group's own folder is the mount.
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(8 * mib) + "\n");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(9 * mib) + "\n");
    EXPECT_EQ(memory_left(root.path), 0U);
}

// A device with 1 GiB left, whatever this machine has. What the test's process has touched does not matter
// much.
struct Device {
    Device() { root.write("/proc/meminfo", "MemAvailable: 1048576 kB\n"); }
    // Gives blocks until there are no more, and returns how many bytes that were.
    std::uint64_t exhaust(std::uint64_t block) {
        std::uint64_t given = 0, address = 0;
        while (given < 4096 * mib && memory.allocate(block, address, problem) == Status::ok)
            given += block;
        return given;
    }
    Root root;
    DeviceMemory memory{root.path};
    std::string problem;
};

TEST(DeviceMemory, CountsWhatWasGivenAndNotTouched) {
    Device device;
    const std::uint64_t given = device.exhaust(100 * mib);
    EXPECT_GE(given, 900 * mib);
    EXPECT_LT(given, 1500 * mib);
    EXPECT_EQ(device.memory.in_use(), given);
    EXPECT_EQ(device.problem.find("104857600 bytes of device memory are not there: "), 0U) << device.problem;
    EXPECT_NE(device.problem.find("are in use, and the device has"), std::string::npos) << device.problem;
}

TEST(DeviceMemory, CountsManySmallBlocks) {
    Device device;
    EXPECT_LT(device.exhaust(5 * mib), 1500 * mib);
    EXPECT_NE(device.problem.find("and the device has"), std::string::npos) << device.problem;
}

}  // namespace
}  // namespace offpath::target
