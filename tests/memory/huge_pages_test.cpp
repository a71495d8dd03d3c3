// Huge pages for buffers that another process copies often.
#include "memory/huge_pages.h"

#include "../emulation.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include <sys/mman.h>

namespace offpath::memory {
namespace {

constexpr std::size_t bytes = 16 << 20;

struct Area {
    explicit Area(int advice) {
        void* const got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        begin = reinterpret_cast<std::uintptr_t>(got);
        madvise(got, bytes, advice);
        std::memset(got, 7, bytes);
    }
    ~Area() { munmap(reinterpret_cast<void*>(begin), bytes); }
    Area(const Area&) = delete;
    Area& operator=(const Area&) = delete;
    std::uintptr_t end() const { return begin + bytes; }
    std::uintptr_t begin = 0;
};

// Of all mappings of this process, since the kernel may join neighbours.
std::size_t huge_kib() {
    std::ifstream of_process("/proc/self/smaps_rollup");
    std::size_t sum = 0, kib = 0;
    for (std::string line; std::getline(of_process, line);)
        if (std::sscanf(line.c_str(), "AnonHugePages: %zu", &kib) == 1) sum += kib;
    return sum;
}

// Makes the pages of the buffer as far as they are due. Returns how many; the last error in `error`.
int make_all(HugePages& pages, const Area& area, int& error) {
    int count = 0;
    error = 0;
    while (const std::uintptr_t page = pages.next(area.begin, area.end())) {
        error = pages.make(page);
        pages.made(area.begin, area.end(), error);
        ++count;
    }
    return count;
}

// Why there are no huge pages here; null: there are.
const char* lacking() {
    if (HugePages::system_page() == 0) return "the system has no huge pages, or they are switched off";
    return offpath::test::emulated() ? "qemu's user mode does not pass madvise() on" : nullptr;
}

TEST(HugePages, ABufferThatIsUsedAgainIsPutIntoThem) {
    if (const char* why = lacking(); why != nullptr) GTEST_SKIP() << why;
    const std::size_t page = HugePages::system_page();
    HugePages pages;
    const Area area(MADV_NORMAL);
    const std::size_t before = huge_kib();
    int error = 0;
    pages.used(area.begin, area.end());
    EXPECT_EQ(make_all(pages, area, error), 0);  // it may never be used again
    pages.used(area.begin, area.end());
    const int made = make_all(pages, area, error);
    if (error == EINVAL) GTEST_SKIP() << "the kernel is older than 6.1: it cannot make huge pages on request";
    if (error == ENOMEM || error == EAGAIN || error == EBUSY)
        GTEST_SKIP() << "no huge page is free: " << std::strerror(error);
    EXPECT_EQ(error, 0);
    EXPECT_GE(static_cast<std::size_t>(made), bytes / page - 1);
    EXPECT_GE(huge_kib(), before + (bytes - 2 * page) / 1024);
    EXPECT_EQ(*reinterpret_cast<const char*>(area.begin + bytes / 2), 7);
    // All are made. They are looked at again later, since the memory may have been mapped anew.
    for (int use = 2; use < 256; ++use)
        pages.used(area.begin, area.end());
    EXPECT_EQ(make_all(pages, area, error), 0);
    pages.used(area.begin, area.end());
    EXPECT_EQ(make_all(pages, area, error), made);
}

TEST(HugePages, MemoryForWhichTheProgramWantsNoneIsLeftAlone) {
    if (const char* why = lacking(); why != nullptr) GTEST_SKIP() << why;
    HugePages pages;
    const Area area(MADV_NOHUGEPAGE);
    const std::size_t before = huge_kib();
    pages.used(area.begin, area.end());
    pages.used(area.begin, area.end());
    int error = 0;
    EXPECT_EQ(make_all(pages, area, error), 1);  // the first answer is enough
    EXPECT_NE(error, 0);
    EXPECT_EQ(huge_kib(), before);
}

TEST(HugePages, ABufferWithoutAWholePageIsNotCounted) {
    HugePages pages(1 << 21);
    int tries = 0;
    for (int use = 0; use < 3; ++use) {
        pages.used((1 << 21) + 4096, (3 << 21) + 4095 - 4096);
        pages.used(4096, 8192);
        tries += pages.next((1 << 21) + 4096, (3 << 21) + 4095 - 4096) != 0 ? 1 : 0;
        tries += pages.next(4096, 8192) != 0 ? 10 : 0;
    }
    EXPECT_EQ(tries, 0);
    HugePages none(0);
    none.used(0, 1 << 30);
    none.used(0, 1 << 30);
    EXPECT_EQ(none.next(0, 1 << 30), 0u);
}

}  // namespace
}  // namespace offpath::memory
