// Ordinary memory of a client that a proxy maps: which parts of it, by which pointers.
#include "memory/shared_pages.h"

#include "host_process.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

namespace offpath::memory {
namespace {

struct SharedPagesTest : testing::Test {
    static constexpr std::uint64_t all = std::uint64_t{1} << 48;
    const std::uint64_t page = page_bytes();
    File file;
    SharedPages pages;
    const char* why = "";
    void SetUp() override { ASSERT_EQ(make_memory_file("test", all, file), Status::ok); }
    using Parts = std::vector<std::pair<bool, std::uint64_t>>;
    File copy() const { return File(dup(file.get())); }
    Status add(std::uint64_t first, std::uint64_t count) {
        return pages.add(first * page, count * page, copy(), why);
    }
    void forget(std::uint64_t first, std::uint64_t count) { pages.forget(first * page, count * page); }
    // What run() says of the range, part by part.
    Parts parts(std::uint64_t address, std::uint64_t bytes) const {
        Parts found;
        for (std::uint64_t done = 0; done < bytes;) {
            const SharedPages::Run run = pages.run(address + done, bytes - done);
            found.emplace_back(run.pointer != nullptr, run.bytes);
            done += run.bytes;
            if (run.bytes == 0) break;
        }
        return found;
    }
};

TEST_F(SharedPagesTest, LeadToTheBytesOfTheirAddress) {
    const std::uint64_t address = 0x7f1234567000;
    ASSERT_EQ(pages.add(address, 4 * page, copy(), why), Status::ok) << why;
    const char text[] = "text";
    ASSERT_EQ(pwrite(file.get(), text, sizeof text, static_cast<off_t>(address + page + 10)),
              static_cast<ssize_t>(sizeof text));
    const SharedPages::Run run = pages.run(address + page + 10, sizeof text);
    ASSERT_EQ(run.bytes, sizeof text);
    ASSERT_NE(run.pointer, nullptr);
    EXPECT_EQ(std::memcmp(run.pointer, text, sizeof text), 0);
    EXPECT_EQ(parts(address - 100, 4 * page + 300), (Parts{{false, 100}, {true, 4 * page}, {false, 200}}));
}

TEST_F(SharedPagesTest, NeighboursJoinAndPartsLeave) {
    ASSERT_EQ(add(100, 2), Status::ok);
    ASSERT_EQ(add(104, 2), Status::ok);
    ASSERT_EQ(add(102, 2), Status::ok);
    EXPECT_EQ(parts(100 * page, 6 * page), (Parts{{true, 6 * page}}));
    ASSERT_EQ(add(99, 20), Status::ok);
    EXPECT_EQ(parts(99 * page, 20 * page), (Parts{{true, 20 * page}}));
    forget(101, 2);
    forget(90, 10);
    forget(118, 100);
    EXPECT_EQ(parts(99 * page, 20 * page),
              (Parts{{false, page}, {true, page}, {false, 2 * page}, {true, 15 * page}, {false, page}}));
    forget(0, all / page);
    EXPECT_TRUE(pages.empty());
    forget(0, UINT64_MAX / page);
}

TEST_F(SharedPagesTest, AWindowsEndIsAPartsEnd) {
    const std::uint64_t end = 5 * SharedPages::window_bytes;
    ASSERT_EQ(pages.add(end - 2 * page, 5 * page, copy(), why), Status::ok);
    EXPECT_EQ(parts(end - page, 4 * page), (Parts{{true, page}, {true, 3 * page}}));
}

// A pointer that was given out leads to memory, whatever the client has done with the pages since.
TEST_F(SharedPagesTest, PointersOutliveThePages) {
    ASSERT_EQ(add(7, 1), Status::ok);
    std::byte* const pointer = pages.run(7 * page, page).pointer;
    forget(7, 1);
    std::memset(pointer, 1, page);
    EXPECT_EQ(pages.run(7 * page, page).pointer, nullptr);
}

TEST_F(SharedPagesTest, RefusesWhatIsNoSharedMemory) {
    EXPECT_EQ(pages.add(page + 1, page, copy(), why), Status::invalid);
    EXPECT_EQ(pages.add(page, page - 1, copy(), why), Status::invalid);
    EXPECT_EQ(pages.add(page, 0, copy(), why), Status::invalid);
    EXPECT_EQ(pages.add(UINT64_MAX - page + 1, 2 * page, copy(), why), Status::invalid);
    EXPECT_EQ(pages.add(all, page, copy(), why), Status::invalid) << "beyond the file";
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    close(pipes[1]);
    EXPECT_EQ(pages.add(page, page, File(pipes[0]), why), Status::invalid);
    EXPECT_TRUE(pages.empty());
}

TEST_F(SharedPagesTest, HasLimits) {
    Status status = Status::ok;
    std::uint64_t windows = 0;
    for (; status == Status::ok && windows <= SharedPages::most_windows; ++windows)
        status = pages.add(windows * SharedPages::window_bytes, page, copy(), why);
    EXPECT_EQ(status, Status::memory);
    EXPECT_EQ(windows, SharedPages::most_windows + 1);
    status = Status::ok;
    for (std::uint64_t i = 1; status == Status::ok && i <= SharedPages::most_ranges; ++i)
        status = add(2 * i, 1);
    EXPECT_EQ(status, Status::memory);
}

TEST_F(SharedPagesTest, AgreeWithAListOfPages) {
    std::mt19937 random(5);
    constexpr std::uint64_t count = 64;
    std::vector<bool> expected(count, false);
    for (int step = 0; step < 4000; ++step) {
        const std::uint64_t first = random() % count, pages_of_it = 1 + random() % (count - first);
        const bool adds = random() % 2 == 0;
        if (adds)
            ASSERT_EQ(add(1000 + first, pages_of_it), Status::ok);
        else
            forget(1000 + first, pages_of_it);
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first), pages_of_it, adds);
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(pages.run((1000 + i) * page + 5, 1).pointer != nullptr, expected[i]) << "page " << i;
    }
}

// Of another process, by pointers where pages are shared and by cma elsewhere.
struct SharedPagesOfAHost : testing::Test {
    const std::uint64_t page = page_bytes(), bytes = 40 * page;
    test::HostProcess host;
    std::unique_ptr<SessionMemory> memory;
    test::SharedMemory pages;
    std::atomic<std::uint32_t> given_up{0}, writing{0};
    HostRange range;
    void SetUp() override {
        SessionMemoryConfig config = host.config(GeneralBackEnd::automatic);
        config.given_up = &given_up;
        config.writing = &writing;
        std::string problem;
        ASSERT_EQ(make_session_memory(std::move(config), memory, problem), Status::ok) << problem;
        if (memory->general_back_end() != BackEnd::cma) GTEST_SKIP() << "no cma here";
        pages = host.allocate_shared_pages(bytes);
        range = {0, pages.address, bytes};
    }
    Status share(std::uint64_t first, std::uint64_t count) {
        return memory->share_pages(pages.address + first * page, count * page, File(dup(pages.file.get())));
    }
};

TEST_F(SharedPagesOfAHost, ReadsAndWritesAsBefore) {
    host.fill(pages.address, bytes, 1);
    std::vector<std::byte> expected = test::pattern_bytes(1, bytes);
    std::mt19937 random(3);
    for (int step = 0; step < 300; ++step) {
        const std::uint64_t first = random() % 40, count = 1 + random() % (40 - first);
        if (random() % 3 == 0)
            memory->forget_pages(pages.address + first * page, count * page);
        else
            ASSERT_EQ(share(first, count), Status::ok);
        const std::uint64_t offset = random() % bytes, some = 1 + random() % (bytes - offset);
        std::vector<std::byte> got(some);
        ASSERT_EQ(test::read_all(*memory, range, offset, got.data(), some), Status::ok);
        ASSERT_TRUE(
            std::equal(got.begin(), got.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset)));
        const auto data = test::pattern_bytes(static_cast<std::uint64_t>(step), some);
        ASSERT_EQ(test::write_all(*memory, range, offset, data.data(), some), Status::ok);
        std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    EXPECT_EQ(host.contents(pages.address, bytes), expected);
    EXPECT_EQ(writing.load(), 0u);
}

TEST_F(SharedPagesOfAHost, PartsThatCanBeReadThroughAPointer) {
    host.fill(pages.address, bytes, 2);
    EXPECT_FALSE(memory->has_shared_pages());
    ASSERT_EQ(share(1, 38), Status::ok);
    EXPECT_TRUE(memory->has_shared_pages());
    EXPECT_EQ(memory->readable_run(range, 0, bytes).pointer, nullptr);
    EXPECT_EQ(memory->readable_run(range, 0, bytes).bytes, page);
    const ReadableRun run = memory->readable_run(range, page + 5, bytes - page - 5);
    ASSERT_EQ(run.bytes, 38 * page - 5);
    EXPECT_EQ(run.pointer[0], test::pattern(2, page + 5));
    EXPECT_EQ(memory->direct(range, page, page), nullptr) << "nothing is written past the mark";
    EXPECT_TRUE(memory->reads_at_once(range, page, page));
    memory->stop(Status::canceled);
    EXPECT_EQ(memory->readable_run(range, page, page).pointer, nullptr);
}

TEST_F(SharedPagesOfAHost, NothingIsWrittenForAHostThatHasGivenUp) {
    host.fill(pages.address, bytes, 3);
    ASSERT_EQ(share(0, 40), Status::ok);
    given_up = 1;
    const std::vector<std::byte> data(bytes);
    EXPECT_EQ(test::write_all(*memory, range, 0, data.data(), bytes), Status::peer_lost);
    EXPECT_EQ(host.contents(pages.address, bytes), test::pattern_bytes(3, bytes));
}

TEST_F(SharedPagesOfAHost, OnlyWithCma) {
    std::unique_ptr<SessionMemory> staged;
    std::string problem;
    ASSERT_EQ(make_session_memory(host.config(GeneralBackEnd::staged), staged, problem), Status::ok)
        << problem;
    EXPECT_EQ(staged->share_pages(pages.address, bytes, File(dup(pages.file.get()))), Status::unsupported);
    EXPECT_FALSE(staged->has_shared_pages());
}

}  // namespace
}  // namespace offpath::memory
