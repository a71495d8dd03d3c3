// A proxy's access to the memory of another real process, through every back end.
#include "host_process.h"
#include "memory/cma.h"

#include <random>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace offpath::memory::test {
namespace {

constexpr std::uint64_t buffer_bytes = 300 << 10;

class BackEndTest : public testing::TestWithParam<BackEnd> {
  protected:
    void SetUp() override {
        const BackEnd kind = GetParam();
        const auto general = kind == BackEnd::staged ? GeneralBackEnd::staged : GeneralBackEnd::automatic;
        std::string problem;
        const Status status = make_session_memory(host_.config(general), memory_, problem);
        ASSERT_EQ(status, Status::ok) << problem;
        if (kind == BackEnd::cma && memory_->general_back_end() != BackEnd::cma)
            GTEST_SKIP() << "no cma here";
        if (kind == BackEnd::staged) {
            ASSERT_EQ(host_.start_agent(memory_->take_staging_files()), Status::ok);
        }
        if (kind == BackEnd::map) {
            SharedMemory shared = host_.allocate_shared(buffer_bytes);
            ASSERT_EQ(shared.bytes, buffer_bytes);
            address_ = shared.address;
            ASSERT_EQ(
                memory_->add_region(shared.region, shared.address, shared.bytes, std::move(shared.file)),
                Status::ok);
            range_ = {shared.region, 0, buffer_bytes};
        } else {
            address_ = host_.allocate(buffer_bytes);
            range_ = {0, address_, buffer_bytes};
        }
    }

    HostProcess host_;
    std::unique_ptr<SessionMemory> memory_;
    std::uint64_t address_ = 0;  // in the host process
    HostRange range_;
};

TEST_P(BackEndTest, NamesItself) {
    EXPECT_EQ(memory_->back_end(range_), GetParam());
    EXPECT_EQ(memory_->direct(range_, 0, 1) != nullptr, GetParam() == BackEnd::map);
}

TEST_P(BackEndTest, ReadsWhatTheHostWrote) {
    host_.fill(address_, buffer_bytes, 1);
    const auto expected = pattern_bytes(1, buffer_bytes);
    std::mt19937_64 random(1);
    for (int i = 0; i < 60; ++i) {
        const std::uint64_t offset = random() % buffer_bytes;
        const std::uint64_t bytes = random() % (buffer_bytes - offset + 1);
        std::vector<std::byte> got(bytes);
        ASSERT_EQ(read_all(*memory_, range_, offset, got.data(), bytes), Status::ok);
        ASSERT_TRUE(
            std::equal(got.begin(), got.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset)))
            << bytes << " bytes at " << offset;
    }
}

TEST_P(BackEndTest, WritesArriveAndTouchNothingElse) {
    host_.fill(address_, buffer_bytes, 2);
    auto expected = pattern_bytes(2, buffer_bytes);
    std::mt19937_64 random(2);
    for (std::uint64_t i = 0; i < 30; ++i) {
        const std::uint64_t offset = random() % buffer_bytes;
        const std::uint64_t bytes = random() % (std::min<std::uint64_t>(buffer_bytes - offset, 70000) + 1);
        const auto data = pattern_bytes(100 + i, bytes);
        ASSERT_EQ(write_all(*memory_, range_, offset, data.data(), bytes), Status::ok);
        std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    EXPECT_EQ(host_.contents(address_, buffer_bytes), expected);
}

TEST_P(BackEndTest, WholeBufferBothWays) {
    const auto data = pattern_bytes(3, buffer_bytes);
    ASSERT_EQ(write_all(*memory_, range_, 0, data.data(), data.size()), Status::ok);
    std::vector<std::byte> got(buffer_bytes);
    ASSERT_EQ(read_all(*memory_, range_, 0, got.data(), got.size()), Status::ok);
    EXPECT_EQ(got, data);
    EXPECT_EQ(host_.contents(address_, buffer_bytes), data);
}

TEST_P(BackEndTest, RangesInsideABufferCountFromItsStart) {
    host_.fill(address_, buffer_bytes, 4);
    const HostRange part{range_.region, range_.address + 1000, 5000};
    std::vector<std::byte> got(100);
    ASSERT_EQ(read_all(*memory_, part, 4900, got.data(), got.size()), Status::ok);
    EXPECT_EQ(got[0], pattern(4, 5900));
    EXPECT_EQ(got[99], pattern(4, 5999));
}

TEST_P(BackEndTest, RefusesWhatLeavesTheBuffer) {
    host_.fill(address_, buffer_bytes, 5);
    std::vector<std::byte> data(buffer_bytes, std::byte{0xee});
    const auto before = data;
    const std::uint64_t huge = ~std::uint64_t{0};
    const struct {
        std::uint64_t offset, bytes;
    } bad[] = {{0, buffer_bytes + 1}, {buffer_bytes, 1}, {1, buffer_bytes}, {huge, 1}, {huge, 2}, {1, huge},
               {huge - 4, 8}};
    for (const auto& [offset, bytes] : bad) {
        EXPECT_EQ(read_all(*memory_, range_, offset, data.data(), bytes), Status::access) << offset;
        EXPECT_EQ(write_all(*memory_, range_, offset, data.data(), bytes), Status::access) << offset;
        EXPECT_EQ(memory_->direct(range_, offset, bytes), nullptr);
    }
    EXPECT_EQ(data, before);
    EXPECT_EQ(host_.contents(address_, buffer_bytes), pattern_bytes(5, buffer_bytes));
    std::byte nothing{};
    EXPECT_EQ(read_all(*memory_, range_, buffer_bytes, &nothing, 0), Status::ok);
    EXPECT_EQ(memory_->pin({range_.region, huge - 10, 100}), Status::access);
    EXPECT_EQ(memory_->pin({77, 0, 1}), Status::access);
}

TEST_P(BackEndTest, AHostThatDiesEndsTransfersWithAnError) {
    std::vector<std::byte> data(buffer_bytes);
    ASSERT_EQ(read_all(*memory_, range_, 0, data.data(), data.size()), Status::ok);
    if (GetParam() == BackEnd::staged) {
        host_.stop_agent();
        Arrival read, write;
        ASSERT_EQ(memory_->read(range_, 0, data.data(), data.size(), &read), Status::in_progress);
        ASSERT_EQ(memory_->write(range_, 0, data.data(), data.size(), &write), Status::in_progress);
        host_.kill();
        memory_->progress();
        EXPECT_FALSE(memory_->drained());
        memory_->abandon(Status::peer_lost);
        EXPECT_TRUE(memory_->drained());
        EXPECT_EQ(read.status, Status::peer_lost);
        EXPECT_EQ(write.status, Status::peer_lost);
        EXPECT_EQ(read.calls + write.calls, 2);
    } else {
        host_.kill();
    }
    if (GetParam() == BackEnd::map) {
        // The mapping keeps the memory, so accesses at this moment continue without a fault.
        EXPECT_EQ(write_all(*memory_, range_, 0, data.data(), data.size()), Status::ok);
        memory_->abandon(Status::peer_lost);
    }
    EXPECT_EQ(read_all(*memory_, range_, 0, data.data(), data.size()), Status::peer_lost);
    EXPECT_EQ(write_all(*memory_, range_, 0, data.data(), data.size()), Status::peer_lost);
}

TEST_P(BackEndTest, AfterStopNothingIsTouched) {
    host_.fill(address_, buffer_bytes, 6);
    memory_->stop(Status::canceled);
    ASSERT_TRUE(memory_->drained());
    std::vector<std::byte> data(buffer_bytes);
    EXPECT_EQ(write_all(*memory_, range_, 0, data.data(), data.size()), Status::canceled);
    EXPECT_EQ(read_all(*memory_, range_, 0, data.data(), data.size()), Status::canceled);
    EXPECT_EQ(memory_->direct(range_, 0, 1), nullptr);
    EXPECT_EQ(memory_->pin(range_), Status::canceled);
    EXPECT_EQ(host_.contents(address_, buffer_bytes), pattern_bytes(6, buffer_bytes));
}

INSTANTIATE_TEST_SUITE_P(All, BackEndTest, testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                         [](const auto& instance) { return to_string(instance.param); });

// With cma and with staged, memory that is missing or not writable is an error, and no side crashes.
class GeneralTest : public testing::TestWithParam<GeneralBackEnd> {};

TEST_P(GeneralTest, MemoryThatIsNotThereIsAnError) {
    HostProcess host;
    std::unique_ptr<SessionMemory> memory;
    std::string problem;
    if (make_session_memory(host.config(GetParam()), memory, problem) != Status::ok) GTEST_SKIP() << problem;
    if (GetParam() == GeneralBackEnd::staged) {
        ASSERT_EQ(host.start_agent(memory->take_staging_files()), Status::ok);
    }
    std::vector<std::byte> data(100000, std::byte{1});
    EXPECT_EQ(read_all(*memory, {0, 4096, data.size()}, 0, data.data(), data.size()), Status::access);
    EXPECT_EQ(write_all(*memory, {0, 4096, data.size()}, 0, data.data(), data.size()), Status::access);
    const std::uint64_t fixed = host.allocate_read_only(data.size());
    EXPECT_EQ(write_all(*memory, {0, fixed, data.size()}, 0, data.data(), data.size()), Status::access);
    EXPECT_EQ(read_all(*memory, {0, fixed, data.size()}, 0, data.data(), data.size()), Status::ok);
    EXPECT_EQ(data, std::vector<std::byte>(data.size()));
    EXPECT_EQ(memory->health(), Status::ok);
    const std::uint64_t good = host.allocate(data.size());
    EXPECT_EQ(write_all(*memory, {0, good, data.size()}, 0, data.data(), data.size()), Status::ok);
}

INSTANTIATE_TEST_SUITE_P(Both, GeneralTest, testing::Values(GeneralBackEnd::cma, GeneralBackEnd::staged),
                         [](const auto& instance) {
                             return instance.param == GeneralBackEnd::cma ? "cma" : "staged";
                         });

// The process permits its memory to be read at first. Then it does not, as after prctl(PR_SET_DUMPABLE, 0).
class HiddenHost : public testing::Test {
  protected:
    void SetUp() override {
        std::string problem;
        if (make_session_memory(host_.config(GeneralBackEnd::cma), memory_, problem) != Status::ok)
            GTEST_SKIP() << problem;
        without_.emplace();
        host_.hide();
        std::string why_not;
        ASSERT_NE(cma_probe(host_.pid(), host_.probe_address(), host_.probe_value(), why_not), Status::ok);
    }

    std::optional<WithoutPtrace> without_;
    HostProcess host_;
    std::unique_ptr<SessionMemory> memory_;
};

TEST_F(HiddenHost, ItsMemoryIsStillReached) {
    constexpr std::uint64_t bytes = 3'000'001;
    const std::uint64_t here = host_.allocate(bytes), there = host_.allocate(bytes);
    host_.fill(here, bytes, 5);
    std::vector<std::byte> data(bytes);
    ASSERT_EQ(read_all(*memory_, {0, here, bytes}, 0, data.data(), bytes), Status::ok);
    EXPECT_EQ(data, pattern_bytes(5, bytes));
    ASSERT_EQ(write_all(*memory_, {0, there, bytes}, 0, data.data(), bytes), Status::ok);
    EXPECT_EQ(host_.contents(there, bytes), pattern_bytes(5, bytes));
}

TEST_F(HiddenHost, ManyPiecesAreStillCopied) {
    const std::uint64_t there = host_.allocate(40000);
    host_.fill(there, 40000, 6);
    const auto wanted = pattern_bytes(6, 40000);
    std::vector<std::byte> data(1000);
    std::vector<HostPiece> pieces;
    for (std::uint64_t i = 0; i < data.size(); ++i)
        pieces.push_back({{0, there + 40 * i, 1}, data.data() + i});
    std::uint32_t later = 0;
    Arrival arrival;
    const Status status = memory_->copy_pieces(false, pieces, &arrival, later);
    if (later > 0) wait_for(*memory_, arrival);
    ASSERT_EQ(later > 0 ? arrival.status : status, Status::ok);
    for (std::size_t i = 0; i < data.size(); ++i)
        ASSERT_EQ(data[i], wanted[40 * i]) << i;
}

TEST_F(HiddenHost, MissingAndReadOnlyMemoryIsStillAnError) {
    std::vector<std::byte> data(100000, std::byte{1});
    EXPECT_EQ(read_all(*memory_, {0, 4096, data.size()}, 0, data.data(), data.size()), Status::access);
    EXPECT_EQ(write_all(*memory_, {0, 4096, data.size()}, 0, data.data(), data.size()), Status::access);
    const std::uint64_t fixed = host_.allocate_read_only(data.size());
    EXPECT_EQ(write_all(*memory_, {0, fixed, data.size()}, 0, data.data(), data.size()), Status::access);
    EXPECT_EQ(read_all(*memory_, {0, fixed, data.size()}, 0, data.data(), data.size()), Status::ok);
    EXPECT_EQ(data, std::vector<std::byte>(data.size()));
    host_.kill();
    EXPECT_EQ(read_all(*memory_, {0, fixed, data.size()}, 0, data.data(), data.size()), Status::peer_lost);
}

TEST(Choice, CmaIsTakenOnlyWhenTheProbeReadsTheRightWord) {
    HostProcess host;
    std::string why_not;
    if (cma_probe(host.pid(), host.probe_address(), host.probe_value(), why_not) != Status::ok)
        GTEST_SKIP() << why_not;
    std::unique_ptr<SessionMemory> memory;
    std::string problem;
    SessionMemoryConfig config = host.config(GeneralBackEnd::automatic);
    ASSERT_EQ(make_session_memory(std::move(config), memory, problem), Status::ok);
    EXPECT_EQ(memory->general_back_end(), BackEnd::cma);
    EXPECT_GE(memory->event_fd(), 0) << "copies that may wait tell their end";
    EXPECT_FALSE(memory->take_staging_files().area);

    for (const auto& change : {+[](SessionMemoryConfig& c) { c.probe_value ^= 1; },
                               +[](SessionMemoryConfig& c) { c.probe_address = 4096; },
                               +[](SessionMemoryConfig& c) { c.pid = 0; }}) {
        config = host.config(GeneralBackEnd::automatic);
        change(config);
        ASSERT_EQ(make_session_memory(std::move(config), memory, problem), Status::ok);
        EXPECT_EQ(memory->general_back_end(), BackEnd::staged);
        config = host.config(GeneralBackEnd::cma);
        change(config);
        problem.clear();
        EXPECT_EQ(make_session_memory(std::move(config), memory, problem), Status::unsupported);
        EXPECT_NE(problem.find("cma cannot be had: "), std::string::npos) << problem;
    }
}

TEST(Choice, StagingLimitsAreChecked) {
    HostProcess host;
    std::unique_ptr<SessionMemory> memory;
    for (const auto& [slots, bytes] :
         {std::pair{1u, 4096u}, {65u, 4096u}, {4u, 4095u}, {4u, 0u}, {4u, 1u << 25}}) {
        SessionMemoryConfig config = host.config(GeneralBackEnd::staged);
        config.staging_slots = slots;
        config.staging_slot_bytes = bytes;
        std::string problem;
        EXPECT_EQ(make_session_memory(std::move(config), memory, problem), Status::invalid);
        EXPECT_NE(problem.find("accepted are 2 to 64 slots"), std::string::npos) << problem;
    }
    EXPECT_EQ(memory, nullptr);
}

class RegionsTest : public testing::Test {
  protected:
    void SetUp() override { make(std::uint64_t{1} << 30, 4096); }
    void make(std::uint64_t cap, std::uint32_t max_regions) {
        SessionMemoryConfig config = host_.config(GeneralBackEnd::automatic);
        config.mapped_bytes_cap = cap;
        config.max_regions = max_regions;
        std::string problem;
        ASSERT_EQ(make_session_memory(std::move(config), memory_, problem), Status::ok) << problem;
    }
    Status add(SharedMemory& shared) {
        return memory_->add_region(shared.region, shared.address, shared.bytes, File(dup(shared.file.get())));
    }
    HostProcess host_;
    std::unique_ptr<SessionMemory> memory_;
};

TEST_F(RegionsTest, RemovalWaitsForPins) {
    SharedMemory shared = host_.allocate_shared(8192);
    ASSERT_EQ(add(shared), Status::ok);
    const HostRange range{shared.region, 0, 8192};
    ASSERT_EQ(memory_->pin(range), Status::ok);
    ASSERT_EQ(memory_->pin(range), Status::ok);
    EXPECT_EQ(memory_->remove_region(shared.region), Status::retry);
    EXPECT_EQ(memory_->pin(range), Status::access) << "a region that is being revoked takes no new users";
    std::byte* const pointer = memory_->direct(range, 0, 8192);
    ASSERT_NE(pointer, nullptr) << "those who use it go on";
    pointer[8191] = std::byte{42};
    memory_->unpin(range);
    EXPECT_EQ(memory_->remove_region(shared.region), Status::retry);
    memory_->unpin(range);
    EXPECT_EQ(memory_->remove_region(shared.region), Status::ok);
    EXPECT_EQ(memory_->remove_region(shared.region), Status::invalid);
    EXPECT_EQ(memory_->direct(range, 0, 1), nullptr);
    EXPECT_EQ(host_.contents(shared.address + 8191, 1)[0], std::byte{42});
}

TEST_F(RegionsTest, BadRegionsAreRefused) {
    SharedMemory shared = host_.allocate_shared(8192);
    const auto try_add = [&](std::uint64_t id, std::uint64_t bytes, int fd) {
        return memory_->add_region(id, shared.address, bytes, File(dup(fd)));
    };
    EXPECT_EQ(try_add(0, 8192, shared.file.get()), Status::invalid);
    EXPECT_EQ(try_add(1, 0, shared.file.get()), Status::invalid);
    EXPECT_EQ(try_add(1, 8193, shared.file.get()), Status::invalid);
    EXPECT_EQ(try_add(1, ~std::uint64_t{0}, shared.file.get()), Status::invalid);
    EXPECT_EQ(memory_->add_region(1, ~std::uint64_t{0} - 100, 8192, File(dup(shared.file.get()))),
              Status::invalid);
    EXPECT_EQ(try_add(1, 8192, 0), Status::invalid) << "not a memory file";
    EXPECT_EQ(memory_->add_region(1, shared.address, 8192, File()), Status::invalid);
    // The owner of this file could shrink it while it is mapped.
    const File loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(loose.get(), 8192), 0);
    EXPECT_EQ(try_add(1, 8192, loose.get()), Status::invalid);
    EXPECT_EQ(try_add(1, 8192, shared.file.get()), Status::ok);
    EXPECT_EQ(try_add(1, 8192, shared.file.get()), Status::invalid) << "the id is in use";
    EXPECT_EQ(memory_->add_exported_region(2, shared.address, 8192, {}), Status::unsupported);
}

TEST_F(RegionsTest, RegionsStayApart) {
    SharedMemory first = host_.allocate_shared(4096), second = host_.allocate_shared(4096);
    ASSERT_NE(first.region, second.region);
    ASSERT_EQ(add(first), Status::ok);
    ASSERT_EQ(add(second), Status::ok);
    const auto data = pattern_bytes(9, 4096);
    ASSERT_EQ(write_all(*memory_, {second.region, 0, 4096}, 0, data.data(), 4096), Status::ok);
    EXPECT_EQ(host_.contents(first.address, 4096), std::vector<std::byte>(4096));
    EXPECT_EQ(host_.contents(second.address, 4096), data);
    std::byte byte{};
    EXPECT_EQ(read_all(*memory_, {first.region, 4096, 1}, 0, &byte, 1), Status::access);
}

TEST_F(RegionsTest, MappingsAreGivenUpUnderTheCapAndComeBack) {
    make(3 * 4096, 5);
    std::vector<SharedMemory> shared;
    for (std::uint64_t i = 0; i < 5; ++i) {
        shared.push_back(host_.allocate_shared(4096));
        host_.fill(shared[i].address, 4096, i);
        ASSERT_EQ(add(shared[i]), Status::ok);
    }
    SharedMemory one_more = host_.allocate_shared(4096);
    EXPECT_EQ(add(one_more), Status::memory) << "over the number of regions";
    for (std::uint64_t i = 0; i < 5; ++i) {
        const HostRange range{shared[i].region, 0, 4096};
        ASSERT_EQ(memory_->pin(range), Status::ok);
        const std::byte* const pointer = memory_->direct(range, 0, 4096);
        ASSERT_NE(pointer, nullptr);
        EXPECT_EQ(pointer[100], pattern(i, 100));
        memory_->unpin(range);
    }
    // Three pinned regions fill the cap.
    for (std::size_t i = 0; i < 3; ++i)
        ASSERT_EQ(memory_->pin({shared[i].region, 0, 4096}), Status::ok);
    EXPECT_EQ(memory_->pin({shared[3].region, 0, 4096}), Status::memory);
    memory_->unpin({shared[0].region, 0, 4096});
    EXPECT_EQ(memory_->pin({shared[3].region, 0, 4096}), Status::ok);
}

}  // namespace
}  // namespace offpath::memory::test
