#include "memory/checked_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace offpath::memory {
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

// Emulators refuse process_vm_readv and process_vm_writev.
bool copies_by_system_call() {
    std::byte from{1}, to{};
    return CheckedMemory::read_some(number(&from), std::span(&to, 1)) == 1;
}

TEST(CheckedMemory, ReadsWhatIsThere) {
    if (!copies_by_system_call()) GTEST_SKIP() << "no process_vm_readv here";
    Pages torn;
    torn.tear(PROT_NONE);
    std::vector<std::byte> here(torn.bytes());
    EXPECT_EQ(CheckedMemory::read_some(number(torn.data()), here), torn.bytes() / 2);
    EXPECT_EQ(CheckedMemory::read_some(number(torn.data()) + torn.bytes() / 2, here), 0U);
}

TEST(CheckedMemory, WritesPiecesUpToTheFirstThatIsNotThere) {
    if (!copies_by_system_call()) GTEST_SKIP() << "no process_vm_writev here";
    Pages torn;
    torn.tear(PROT_READ);
    std::vector<std::byte> here(100, std::byte{'x'});
    const std::uint64_t end = number(torn.data()) + torn.bytes() / 2;
    const std::vector<ForeignPiece> fitting{{number(torn.data()), here.data(), 10},
                                            {end - 5, here.data(), 5}};
    EXPECT_EQ(CheckedMemory::write_pieces(fitting), Status::ok);
    EXPECT_EQ(torn.data()[9], 'x');
    EXPECT_EQ(torn.data()[10], 0);
    EXPECT_EQ(torn.data()[torn.bytes() / 2 - 1], 'x');
    const std::vector<ForeignPiece> torn_one{{end - 5, here.data(), 10}};
    EXPECT_EQ(CheckedMemory::write_pieces(torn_one), Status::access);
}

TEST(CheckedMemory, MovesBetweenMemoryAndAnyPlaceInAFile) {
    File file;
    ASSERT_EQ(make_memory_file("offpath-test", 8192, file), Status::ok);
    Pages torn;
    torn.tear(PROT_NONE);
    std::vector<char> here(5000, 'x'), back(here.size());
    EXPECT_EQ(CheckedMemory::to_file(number(here.data()), file.get(), 100, here.size()), Status::ok);
    EXPECT_EQ(CheckedMemory::from_file(file.get(), 100, number(back.data()), back.size()), Status::ok);
    EXPECT_EQ(back, here);
    const std::uint64_t missing = number(torn.data()) + torn.bytes() / 2;
    EXPECT_EQ(CheckedMemory::to_file(missing, file.get(), 0, 100), Status::access);
    EXPECT_EQ(CheckedMemory::from_file(file.get(), 0, missing, 100), Status::access);
    EXPECT_EQ(CheckedMemory::from_file(file.get(), 8192, number(back.data()), 1), Status::system);
}

}  // namespace
}  // namespace offpath::memory
