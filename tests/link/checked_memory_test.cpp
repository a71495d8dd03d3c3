#include "link/checked_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace offpath::link {
namespace {

std::uint64_t number(const void* address) {
    return reinterpret_cast<std::uint64_t>(address);
}

// Three pages. The one in the middle can be unmapped.
class Pages {
  public:
    Pages()
        : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
          data_(static_cast<char*>(
              mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Pages() { munmap(data_, bytes()); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    char* data() { return data_; }
    std::size_t bytes() const { return 200 * page_; }
    void tear(int protection) { mprotect(data_ + 100 * page_, page_, protection); }

  private:
    const std::size_t page_;
    char* const data_;
};

TEST(CheckedMemory, CopiesAnyPlaceAndLength) {
    const CheckedMemory memory;
    Pages from, to;
    for (std::size_t i = 0; i < from.bytes(); ++i)
        from.data()[i] = static_cast<char>(i * 131 + (i >> 12));
    const std::size_t most = from.bytes() - 8192;
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{4095}, std::size_t{4097}, std::size_t{300001}, most})
        for (const std::size_t skip : {std::size_t{0}, std::size_t{3}, std::size_t{4090}}) {
            std::memset(to.data(), 0, to.bytes());
            ASSERT_EQ(memory.copy(number(from.data()) + skip, number(to.data()) + 7, bytes), Status::ok);
            ASSERT_EQ(std::memcmp(to.data() + 7, from.data() + skip, bytes), 0) << bytes << " from " << skip;
            ASSERT_EQ(to.data()[6], 0);
            ASSERT_EQ(to.data()[7 + bytes], 0);
        }
}

TEST(CheckedMemory, CopiesOfMemoryThatIsNotThereAreErrorsAndTheNextIsRight) {
    const CheckedMemory memory;
    std::vector<char> here(512 << 10, 'x'), there(here.size());
    for (int i = 0; i < 3; ++i) {
        Pages torn;
        torn.tear(PROT_NONE);
        EXPECT_EQ(memory.copy(number(torn.data()), number(there.data()), here.size()), Status::access);
        EXPECT_EQ(memory.copy(number(here.data()), number(torn.data()), here.size()), Status::access);
        torn.tear(PROT_READ);
        EXPECT_EQ(memory.copy(number(here.data()), number(torn.data()), here.size()), Status::access);
        EXPECT_EQ(memory.copy(8, number(there.data()), 100), Status::access);
        there.assign(there.size(), 0);
        ASSERT_EQ(memory.copy(number(here.data()), number(there.data()), here.size()), Status::ok);
        ASSERT_EQ(there, here);
    }
}

}  // namespace
}  // namespace offpath::link
