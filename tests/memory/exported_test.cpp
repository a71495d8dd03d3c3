// Exported regions (xgvmi) over a fabric that copies within this process: which calls SessionMemory makes.
#include "memory/session_memory.h"

#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace offpath::memory {
namespace {

class CopyingFabric : public ExportedMemory {
  public:
    Status probe(std::string&) override { return Status::ok; }
    Status import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                         Handle& handle) override {
        if (blob.size() != 4) return Status::invalid;
        imports[++last] = {address, address + bytes};
        handle = reinterpret_cast<Handle>(last);
        return Status::ok;
    }
    void release(Handle handle) override {
        EXPECT_EQ(imports.erase(reinterpret_cast<std::uintptr_t>(handle)), 1u) << "released twice";
    }
    Status read(Handle handle, std::uint64_t address, void* to, std::size_t bytes, Completion*) override {
        expect_inside(handle, address, bytes);
        std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
        return Status::ok;
    }
    Status write(Handle handle, std::uint64_t address, const void* from, std::size_t bytes,
                 Completion*) override {
        expect_inside(handle, address, bytes);
        std::memcpy(reinterpret_cast<void*>(address), from, bytes);
        return Status::ok;
    }
    void expect_inside(Handle handle, std::uint64_t address, std::size_t bytes) {
        const auto& [begin, end] = imports.at(reinterpret_cast<std::uintptr_t>(handle));
        EXPECT_GE(address, begin);
        EXPECT_LE(address + bytes, end);
    }
    std::map<std::uintptr_t, std::pair<std::uint64_t, std::uint64_t>> imports;
    std::uintptr_t last = 0;
};

class ExportedTest : public testing::Test {
  protected:
    void SetUp() override {
        SessionMemoryConfig config;
        config.client = "test rank";
        config.general = GeneralBackEnd::staged;
        config.exported = &fabric_;
        std::string problem;
        ASSERT_EQ(make_session_memory(std::move(config), memory_, problem), Status::ok) << problem;
    }
    Status add(std::uint64_t id) {
        return memory_->add_exported_region(id, reinterpret_cast<std::uintptr_t>(host_.data()), host_.size(),
                                            blob_);
    }
    CopyingFabric fabric_;
    std::vector<std::byte> host_ = std::vector<std::byte>(1000), blob_ = std::vector<std::byte>(4);
    std::unique_ptr<SessionMemory> memory_;
};

TEST_F(ExportedTest, TransfersNameTheHostsAddresses) {
    ASSERT_EQ(add(5), Status::ok);
    const HostRange range{5, 100, 300};
    EXPECT_EQ(memory_->back_end(range), BackEnd::xgvmi);
    EXPECT_EQ(memory_->direct(range, 0, 10), nullptr);
    const std::vector<std::byte> data(50, std::byte{7});
    ASSERT_EQ(memory_->write(range, 20, data.data(), data.size(), nullptr), Status::ok);
    EXPECT_EQ(host_[119], std::byte{0});
    EXPECT_EQ(host_[120], std::byte{7});
    EXPECT_EQ(host_[169], std::byte{7});
    EXPECT_EQ(host_[170], std::byte{0});
    std::vector<std::byte> got(50);
    ASSERT_EQ(memory_->read(range, 20, got.data(), got.size(), nullptr), Status::ok);
    EXPECT_EQ(got, data);
    EXPECT_EQ(memory_->read(range, 300, got.data(), 1, nullptr), Status::access);
    EXPECT_EQ(memory_->pin({5, 900, 101}), Status::access);
}

TEST_F(ExportedTest, ImportsAreReleasedOnce) {
    blob_.resize(3);
    EXPECT_EQ(add(1), Status::invalid);
    blob_.resize(4);
    ASSERT_EQ(add(1), Status::ok);
    EXPECT_EQ(add(1), Status::invalid) << "the id is in use";
    ASSERT_EQ(add(2), Status::ok);
    ASSERT_EQ(memory_->pin({1, 0, 10}), Status::ok);
    EXPECT_EQ(memory_->remove_region(1), Status::retry);
    EXPECT_EQ(fabric_.imports.size(), 2u);
    memory_->unpin({1, 0, 10});
    EXPECT_EQ(memory_->remove_region(1), Status::ok);
    EXPECT_EQ(fabric_.imports.size(), 1u);
    memory_.reset();
    EXPECT_TRUE(fabric_.imports.empty());
}

}  // namespace
}  // namespace offpath::memory
