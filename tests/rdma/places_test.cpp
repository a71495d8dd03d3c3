// Memory that only the network card reaches, over real verbs: all access of this process to it is taken away,
// so an instruction that touched it would end the test. A second mapping stands for its owner.
#include "../transport/harness.h"
#include "rdma_device.h"

#include "transport/ucx/exported_memory.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <system_error>

namespace offpath::transport::test {
namespace {

// A file in memory, mapped as its owner has it, and once more for the device.
class Foreign {
  public:
    explicit Foreign(std::size_t bytes) : bytes_(bytes), file_(memfd_create("foreign", MFD_CLOEXEC)) {
        if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0)
            throw std::system_error(errno, std::generic_category());
        owner = map();
        device = map();
    }
    ~Foreign() {
        munmap(owner, bytes_);
        munmap(device, bytes_);
        close(file_);
    }
    Foreign(const Foreign&) = delete;
    Foreign& operator=(const Foreign&) = delete;

    void take_access() const { ASSERT_EQ(mprotect(device, bytes_, PROT_NONE), 0); }
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(device); }
    std::size_t bytes() const { return bytes_; }
    std::byte* owner = nullptr;
    std::byte* device = nullptr;

  private:
    std::byte* map() const {
        void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category());
        return static_cast<std::byte*>(at);
    }
    std::size_t bytes_;
    int file_;
};

// A device with a fabric and the memory of one host.
struct Side {
    std::unique_ptr<Transport> fabric;
    std::unique_ptr<DeviceMemory> memory;
    Foreign host{8 << 20};
    memory::ExportedMemory::Handle handle = nullptr;
    Recorder seen;

    void open() {
        UcxConfig config;
        config.imports = MemorySource::own_process;
        std::string problem;
        ASSERT_EQ(make_ucx_transport(config, fabric, problem), Status::ok) << problem;
        ASSERT_EQ(open_device_memory(*fabric, memory, problem), Status::ok) << problem;
        ASSERT_EQ(memory->import_region({}, host.address(), host.bytes(), handle), Status::ok);
        host.take_access();
        fabric->set_handler(&seen);
    }
    NetworkPlace place(std::size_t offset) const { return memory->place(handle, host.address() + offset); }
    void fill(std::uint64_t seed, std::size_t offset, std::size_t bytes) const {
        const auto payload = make_payload(seed, bytes);
        std::ranges::copy(payload, host.owner + offset);
    }
};

class Places : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!offpath::test::has_rdma_device()) GTEST_SKIP() << "skipped: this system has no RDMA device";
        ASSERT_NO_FATAL_FAILURE(from.open());
        ASSERT_NO_FATAL_FAILURE(to.open());
        ASSERT_EQ(from.fabric->connect(to.fabric->address(), &endpoint), Status::ok);
        ASSERT_TRUE(from.fabric->fetches_into_network());
        ASSERT_EQ(from.fabric->least_from_network(*endpoint), std::size_t{8} << 10);
    }
    template <typename Done>
    bool run(Done done) {
        return pump(
            {from.fabric.get(), to.fabric.get()},
            [&] {
                from.memory->progress();
                to.memory->progress();
                return done();
            },
            60s);
    }
    // Sends what has this seed, and takes it where `fetch` puts it.
    template <typename Send, typename Fetch>
    void move(std::uint64_t seed, std::size_t bytes, Send send, Fetch fetch) {
        const Header header{seed, bytes};
        Counted sent, fetched;
        sent.start(send(header.view(), &sent));
        ASSERT_TRUE(run([&] { return !to.seen.messages.empty(); }));
        ASSERT_NE(to.seen.messages[0].rendezvous, nullptr) << bytes;
        EXPECT_EQ(to.seen.messages[0].bytes, bytes);
        fetched.start(fetch(to.seen.messages[0].rendezvous, &fetched));
        ASSERT_TRUE(run([&] { return sent.done() && fetched.done(); }));
        EXPECT_EQ(sent.status, Status::ok);
        EXPECT_EQ(fetched.status, Status::ok);
        to.seen.messages.clear();
    }

    Side from, to;
    Endpoint* endpoint = nullptr;
};

constexpr std::size_t sizes[] = {8 << 10, (64 << 10) + 1, 512 << 10, (3 << 20) + 17};

TEST_F(Places, MoveBetweenHostsWithoutAnAccessOfTheDevices) {
    std::uint64_t seed = 1;
    for (const std::size_t bytes : sizes) {
        from.fill(++seed, 5, bytes);
        move(
            seed, bytes,
            [&](auto header, auto* done) {
                return from.fabric->send_from(*endpoint, header, from.place(5), bytes, done);
            },
            [&](void* payload, auto* done) {
                return to.fabric->fetch_into(payload, to.place(4099), bytes, done);
            });
        EXPECT_TRUE(holds_pattern(seed, to.host.owner + 4099, bytes)) << bytes;
    }
}

TEST_F(Places, OneEndMayBeThisProcesssMemory) {
    std::uint64_t seed = 20;
    for (const std::size_t bytes : std::span(sizes).subspan(1)) {  // send() brings small payloads along
        const auto payload = make_payload(++seed, bytes);
        move(
            seed, bytes,
            [&](auto header, auto* done) {
                return from.fabric->send(*endpoint, header, payload.data(), bytes, done);
            },
            [&](void* rendezvous, auto* done) {
                return to.fabric->fetch_into(rendezvous, to.place(0), bytes, done);
            });
        EXPECT_TRUE(holds_pattern(seed, to.host.owner, bytes)) << bytes;

        from.fill(++seed, 0, bytes);
        std::vector<std::byte> here(bytes);
        move(
            seed, bytes,
            [&](auto header, auto* done) {
                return from.fabric->send_from(*endpoint, header, from.place(0), bytes, done);
            },
            [&](void* rendezvous, auto* done) {
                return to.fabric->fetch(rendezvous, here.data(), bytes, done);
            });
        EXPECT_TRUE(holds_pattern(seed, here.data(), bytes)) << bytes;
    }
}

TEST_F(Places, TheCardCopiesBetweenHostsOfOneDevice) {
    Foreign other(4 << 20);
    memory::ExportedMemory::Handle handle = nullptr;
    ASSERT_EQ(from.memory->import_region({}, other.address(), other.bytes(), handle), Status::ok);
    other.take_access();
    std::uint64_t seed = 40;
    for (const std::size_t bytes : sizes) {
        from.fill(++seed, 3, bytes);
        Counted done;
        done.start(
            from.memory->copy(from.place(3), from.memory->place(handle, other.address()), bytes, &done));
        ASSERT_TRUE(run([&] { return done.done(); }));
        EXPECT_EQ(done.status, Status::ok);
        EXPECT_TRUE(holds_pattern(seed, other.owner, bytes)) << bytes;
    }
    from.memory->release(handle);
}

TEST_F(Places, StagingReadsAndWritesThem) {
    std::uint64_t seed = 60;
    for (const std::size_t bytes : {1, 8, 1000, 4096, 65537}) {
        from.fill(++seed, 7, static_cast<std::size_t>(bytes));
        std::vector<std::byte> here(static_cast<std::size_t>(bytes));
        Counted read, written;
        read.start(from.memory->read(from.handle, from.host.address() + 7, here.data(), here.size(), &read));
        ASSERT_TRUE(run([&] { return read.done(); }));
        EXPECT_TRUE(holds_pattern(seed, here.data(), here.size()));
        written.start(to.memory->write(to.handle, to.host.address() + 9, here.data(), here.size(), &written));
        ASSERT_TRUE(run([&] { return written.done(); }));
        EXPECT_TRUE(holds_pattern(seed, to.host.owner + 9, here.size()));
    }
}

TEST_F(Places, WhatTheImportDoesNotHoldIsRefused) {
    Counted done;
    const Header header;
    const std::size_t bytes = 8 << 10;
    EXPECT_EQ(
        from.fabric->send_from(*endpoint, header.view(), from.place(from.host.bytes() - 1), bytes, &done),
        Status::access);
    EXPECT_EQ(from.fabric->send_from(*endpoint, header.view(), to.place(0), bytes, &done), Status::access)
        << "the import of another context";
    EXPECT_EQ(from.memory->copy(from.place(0), to.place(0), bytes, &done), Status::access);
    EXPECT_EQ(done.calls, 0);
}

}  // namespace
}  // namespace offpath::transport::test
