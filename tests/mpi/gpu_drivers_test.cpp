// What the front end does when a GPU's driver library lacks a function, or one of its functions fails: memory
// counts as the host's, and a copy that was refused is said to be. gpu_test.cpp has the calls that succeed.
#include "fake_gpu.h"
#include "gpu/drivers.h"
#include "gpu/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace offpath::mpi::gpu {
namespace {

std::array<char, 8> memory_of_gpu{}, memory_of_host{};
void* const gpu_memory = memory_of_gpu.data();
void* const host_memory = memory_of_host.data();

FakeGpu& load(const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void* fake = handle == nullptr ? nullptr : dlsym(handle, "fake_gpu");
    if (fake == nullptr) {
        ADD_FAILURE() << dlerror();
        std::exit(1);
    }
    auto& gpu = *static_cast<FakeGpu*>(fake);
    gpu.memory = gpu_memory;
    return gpu;
}

// A library that the front end has found stays loaded, so each case has a process of its own.
template <typename Body>
void in_a_process(Body body) {
    const auto run = [&] {
        body();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(GpuDrivers, WithoutALibraryAllMemoryIsTheHosts) {
    in_a_process([] {
        EXPECT_FALSE(any_driver());
        EXPECT_FALSE(is_device_memory(gpu_memory));
        const std::array<char, 4> source{1, 2, 3, 4};
        EXPECT_TRUE(copy(host_memory, source.data(), source.size()));
        EXPECT_EQ(memory_of_host[3], 4);
    });
}

TEST(GpuDrivers, ALibraryThatLacksAFunctionIsNotUsed) {
    in_a_process([] {
        for (const char* library : {CUDA_THAT_LACKS, ROCM_THAT_LACKS, LEVEL_ZERO_THAT_LACKS})
            load(library).type = 2;
        EXPECT_EQ(find_cuda(), nullptr);
        EXPECT_EQ(find_rocm(), nullptr);
        EXPECT_EQ(find_level_zero(), nullptr);
        EXPECT_FALSE(any_driver());
        EXPECT_FALSE(is_device_memory(gpu_memory));
    });
}

TEST(GpuDrivers, ARefusedCopyIsSaid) {
    in_a_process([] {
        FakeGpu& gpu = load(CUDA);
        gpu.type = 2;
        EXPECT_TRUE(any_driver());
        EXPECT_TRUE(is_device_memory(gpu_memory));
        EXPECT_TRUE(copy(host_memory, gpu_memory, 8));
        EXPECT_TRUE(copy(gpu_memory, host_memory, 8));
        gpu.copy = 700;
        EXPECT_FALSE(copy(host_memory, gpu_memory, 8));
        EXPECT_FALSE(copy(gpu_memory, host_memory, 8));
        EXPECT_TRUE(copy(gpu_memory, host_memory, 0)) << "there is nothing to copy";
        EXPECT_TRUE(copy(host_memory, host_memory, 8)) << "the GPU has no part in it";
        EXPECT_EQ(gpu.copied, 4);
    });
}

TEST(Cuda, TheTypeOfMemoryDecides) {
    in_a_process([] {
        FakeGpu& gpu = load(CUDA);
        const Driver* driver = find_cuda();
        ASSERT_NE(driver, nullptr);
        for (const auto& [type, on_gpu] : {std::pair(1U, false), {2U, true}, {3U, true}, {4U, false}}) {
            gpu.type = type;
            EXPECT_EQ(driver->holds(gpu_memory), on_gpu) << type;
            EXPECT_FALSE(driver->holds(host_memory));
        }
        gpu.type = 2;
        gpu.managed = 1;
        EXPECT_FALSE(driver->holds(gpu_memory)) << "it moves to the host on demand";
        gpu.managed_attribute = 1;
        EXPECT_TRUE(driver->holds(gpu_memory)) << "an older driver, which has no managed memory";
        gpu.attributes = 1;
        EXPECT_FALSE(driver->holds(gpu_memory)) << "the driver does not know it";
    });
}

TEST(Cuda, CopiesInTheContextOfTheMemory) {
    in_a_process([] {
        FakeGpu& gpu = load(CUDA);
        gpu.type = 2;
        const Driver* driver = find_cuda();
        ASSERT_NE(driver, nullptr);
        EXPECT_TRUE(driver->copy(gpu_memory, host_memory, 8));
        EXPECT_TRUE(driver->copy(host_memory, gpu_memory, 8));
        EXPECT_EQ(gpu.pushed, 2);
        EXPECT_EQ(gpu.popped, 2);
        gpu.synchronize = 1;
        EXPECT_FALSE(driver->copy(gpu_memory, host_memory, 8)) << "the copy has not ended";
        EXPECT_EQ(gpu.popped, 3) << "the thread has its own context again";
        gpu.synchronize = 0;
        gpu.push = 1;
        EXPECT_TRUE(driver->copy(gpu_memory, host_memory, 8));
        EXPECT_EQ(gpu.popped, 3) << "nothing was pushed";
        gpu.push = 0;
        gpu.context_attribute = 1;
        EXPECT_TRUE(driver->copy(gpu_memory, host_memory, 8)) << "memory of a pool has no context";
        EXPECT_EQ(gpu.pushed, 3);
    });
}

TEST(Rocm, ReleasesDifferInTheirTypes) {
    const auto expect = [](int version, const std::vector<std::pair<unsigned, bool>>& types) {
        in_a_process([&] {
            FakeGpu& gpu = load(ROCM);
            gpu.version = version;
            const Driver* driver = find_rocm();
            ASSERT_NE(driver, nullptr);
            for (const auto& [type, on_gpu] : types) {
                gpu.type = type;
                EXPECT_EQ(driver->holds(gpu_memory), on_gpu) << version << ": " << type;
            }
        });
    };
    expect(50'700'000, {{0, false}, {1, true}, {2, true}, {10, false}});
    expect(60'000'000, {{0, false}, {1, false}, {2, true}, {10, true}});
}

TEST(Rocm, FailuresMakeMemoryTheHosts) {
    in_a_process([] {
        FakeGpu& gpu = load(ROCM);
        gpu.version_call = 1;
        EXPECT_EQ(find_rocm(), nullptr) << "without its release the types have no meaning";
        gpu.version_call = 0;
        gpu.type = 2;
        const Driver* driver = find_rocm();
        ASSERT_NE(driver, nullptr);
        EXPECT_TRUE(driver->holds(gpu_memory));
        EXPECT_EQ(gpu.errors_forgotten, 0);
        gpu.managed = 1;
        EXPECT_FALSE(driver->holds(gpu_memory));
        gpu.managed = 0;
        gpu.attributes = 1;
        EXPECT_FALSE(driver->holds(gpu_memory));
        EXPECT_EQ(gpu.errors_forgotten, 1) << "the program does not see an error that is not its own";
        EXPECT_TRUE(driver->copy(gpu_memory, host_memory, 8));
        gpu.copy = 1;
        EXPECT_FALSE(driver->copy(gpu_memory, host_memory, 8));
    });
}

TEST(LevelZero, IsNotUsedIfItCannotStart) {
    in_a_process([] {
        FakeGpu& gpu = load(LEVEL_ZERO);
        for (int FakeGpu::*failing : {&FakeGpu::init, &FakeGpu::drivers, &FakeGpu::contexts}) {
            gpu.*failing = 1;
            EXPECT_EQ(find_level_zero(), nullptr);
            gpu.*failing = 0;
        }
        gpu.driver_count = 0;
        EXPECT_EQ(find_level_zero(), nullptr);
        gpu.driver_count = 2;
        EXPECT_NE(find_level_zero(), nullptr);
    });
}

TEST(LevelZero, CopiesByOneListForEachDevice) {
    in_a_process([] {
        FakeGpu& gpu = load(LEVEL_ZERO);
        const Driver* driver = find_level_zero();
        ASSERT_NE(driver, nullptr);
        for (const auto& [type, on_gpu] : {std::pair(0U, false), {1U, false}, {2U, true}, {3U, false}}) {
            gpu.type = type;
            EXPECT_EQ(driver->holds(gpu_memory), on_gpu) << type;
        }
        EXPECT_FALSE(driver->copy(gpu_memory, host_memory, 8)) << "no GPU owns either side";
        gpu.type = 2;
        gpu.lists = 1;
        EXPECT_FALSE(driver->copy(gpu_memory, host_memory, 8));
        gpu.lists = 0;
        EXPECT_TRUE(driver->copy(gpu_memory, host_memory, 8));
        EXPECT_TRUE(driver->copy(host_memory, gpu_memory, 8));
        EXPECT_EQ(gpu.lists_made, 1);
        gpu.copy = 1;
        EXPECT_FALSE(driver->copy(host_memory, gpu_memory, 8));
        gpu.attributes = 1;
        EXPECT_FALSE(driver->holds(gpu_memory));
    });
}

}  // namespace
}  // namespace offpath::mpi::gpu
