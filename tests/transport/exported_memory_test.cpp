// Exported memory handles: what the probe reports, and the device's data path over memory of this process on
// machines that cannot export memory.
#include "harness.h"

#include "transport/ucx/exported_memory.h"

#include <gtest/gtest.h>

#include <deque>

namespace offpath::transport::test {
namespace {

TEST(ExportedMemory, ProbeSaysWhetherAndWhy) {
    const ExportedMemoryProbe probe = probe_exported_memory();
    EXPECT_TRUE(probe.result.starts_with(probe.works ? "works" : "unsupported: ")) << probe.result;
    EXPECT_GT(probe.result.size(), std::string("unsupported: ").size());
    const UcxFacts facts = ucx_facts();
    EXPECT_EQ(facts.exported_memory_works, probe.works);
    EXPECT_EQ(facts.exported_memory_compiled, probe.compiled);
    if (probe.works) return;
    // The two sides report this too. They must not hand out memory that cannot work.
    std::unique_ptr<memory::HostExporter> exporter;
    std::string problem;
    if (open_host_exporter({}, exporter, problem) == Status::ok) {
        std::vector<std::byte> memory(1 << 16);
        std::unique_ptr<memory::HostExport> exported;
        EXPECT_EQ(exporter->export_region(memory.data(), memory.size(), exported, problem),
                  Status::unsupported);
        EXPECT_EQ(exported, nullptr);
    }
    EXPECT_NE(problem, "");
}

class DevicePath : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        UcxConfig config;
        config.tls = GetParam();
        std::string problem;
        config.imports = MemorySource::own_process;
        ASSERT_EQ(open_device_memory(config, device, problem), Status::ok) << problem;
        ASSERT_EQ(device->import_region({}, base(), host.size(), handle), Status::ok);
    }
    std::uint64_t base() { return reinterpret_cast<std::uint64_t>(host.data()); }
    bool wait(const std::deque<Counted>& all) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        for (const Counted& each : all) {
            while (!each.done()) {
                if (std::chrono::steady_clock::now() > deadline) return false;
                device->progress();
            }
        }
        return true;
    }

    std::vector<std::byte> host = make_payload(1, 4 << 20);
    std::unique_ptr<DeviceMemory> device;
    memory::ExportedMemory::Handle handle = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Tls, DevicePath, testing::Values("tcp", "self"),
                         [](const auto& each) { return each.param; });

TEST_P(DevicePath, ReadsAndWritesWhatItIsTold) {
    const std::size_t sizes[] = {1, 8, 4096, 65537, 1 << 20};
    std::deque<std::vector<std::byte>> buffers;
    std::deque<Counted> done;
    std::size_t offset = 3;
    for (std::size_t bytes : sizes) {
        buffers.emplace_back(bytes);
        done.emplace_back();
        done.back().start(device->read(handle, base() + offset, buffers.back().data(), bytes, &done.back()));
        offset += bytes;
    }
    ASSERT_TRUE(wait(done));
    offset = 3;
    for (const auto& buffer : buffers) {
        EXPECT_TRUE(
            std::equal(buffer.begin(), buffer.end(), host.begin() + static_cast<std::ptrdiff_t>(offset)));
        offset += buffer.size();
    }

    done.clear();
    offset = 3;
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
        buffers[i] = make_payload(100 + i, sizes[i]);
        done.emplace_back();
        done.back().start(device->write(handle, base() + offset, buffers[i].data(), sizes[i], &done.back()));
        offset += sizes[i];
    }
    ASSERT_TRUE(wait(done));
    offset = 3;
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
        EXPECT_EQ(done[i].calls, 1);
        EXPECT_EQ(done[i].status, Status::ok);
        EXPECT_TRUE(holds_pattern(100 + i, host.data() + offset, sizes[i]));
        offset += sizes[i];
    }
    EXPECT_EQ(host[2], pattern(1, 2));
    EXPECT_EQ(host[offset], pattern(1, offset));
    device->release(handle);
}

TEST_P(DevicePath, RefusesWhatTheImportDoesNotHold) {
    std::byte byte{};
    Counted done;
    EXPECT_EQ(device->read(handle, base() + host.size(), &byte, 1, &done), Status::access);
    EXPECT_EQ(device->read(handle, base() - 1, &byte, 1, &done), Status::access);
    EXPECT_EQ(device->write(handle, base() + 1, host.data(), host.size(), &done), Status::access);
    memory::ExportedMemory::Handle other = nullptr;
    EXPECT_EQ(device->import_region({}, base(), 0, other), Status::invalid);
    EXPECT_EQ(device->import_region({}, ~std::uint64_t{0} - 10, 100, other), Status::invalid);
    EXPECT_EQ(other, nullptr);
    EXPECT_EQ(done.calls, 0);
}

}  // namespace
}  // namespace offpath::transport::test
