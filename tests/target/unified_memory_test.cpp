// Unified memory over a stand-in for the program: another mapping of the same bytes at other addresses.
#include "target/host/unified_memory.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace offpath::target {
namespace {

const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Addresses that nothing else uses.
std::uint64_t free_addresses(std::size_t pages) {
    void* const place = mmap(nullptr, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(place, pages * page);
    return reinterpret_cast<std::uint64_t>(place);
}

// A program that has some pages from `begin` on. Their bytes are kept elsewhere.
struct Program final : ProgramMemory {
    explicit Program(std::size_t pages) : bytes(pages * page), begin(free_addresses(pages)) {}
    std::size_t read(std::uint64_t address, std::span<std::byte> into) override {
        ++reads;
        if (address < begin || address >= begin + bytes.size()) return 0;
        const std::size_t count = std::min<std::size_t>(into.size(), begin + bytes.size() - address);
        std::memcpy(into.data(), bytes.data() + (address - begin), count);
        return count;
    }
    bool write(std::span<const memory::ForeignPiece> pieces) override {
        for (const memory::ForeignPiece& piece : pieces) {
            if (piece.address < begin || piece.address + piece.bytes > begin + bytes.size()) return false;
            std::memcpy(bytes.data() + (piece.address - begin), piece.local, piece.bytes);
            written += piece.bytes;
        }
        return true;
    }
    std::vector<std::byte> bytes;
    const std::uint64_t begin;
    std::size_t reads = 0, written = 0;
};

struct Mirror {
    explicit Mirror(std::size_t pages) {
        auto made = std::make_unique<Program>(pages);
        program = made.get();
        begin = program->begin;
        memory = std::make_unique<UnifiedMemory>(std::move(made));
        const AddressRange range{begin, begin + pages * page};
        std::string why;
        EXPECT_EQ(memory->reserve({&range, 1}, why), Status::ok) << why;
    }
    volatile unsigned char& at(std::size_t offset) {
        return *reinterpret_cast<volatile unsigned char*>(begin + offset);
    }
    unsigned char in_program(std::size_t offset) {
        return static_cast<unsigned char>(program->bytes[offset]);
    }
    std::uint64_t begin = 0;
    Program* program = nullptr;
    std::unique_ptr<UnifiedMemory> memory;
    std::string problem;
};

TEST(UnifiedMemory, ComesWithTheFirstTouchAndGoesBackByBytes) {
    Mirror world(8);
    world.program->bytes[3 * page + 5] = std::byte{42};
    ASSERT_TRUE(world.memory->fault(world.begin + 3 * page + 5, 0));
    EXPECT_EQ(world.at(3 * page + 5), 42);
    ASSERT_TRUE(world.memory->fault(world.begin + 3 * page + 6, 0));  // now it wants to write
    world.at(3 * page + 6) = 7;
    // The program changes another byte of the page meanwhile.
    world.program->bytes[3 * page + 9] = std::byte{9};
    ASSERT_TRUE(world.memory->release(world.problem));
    EXPECT_EQ(world.in_program(3 * page + 6), 7);
    EXPECT_EQ(world.in_program(3 * page + 9), 9);
    EXPECT_EQ(world.program->written, 1U);
}

TEST(UnifiedMemory, IsFreshForTheNextFunction) {
    Mirror world(4);
    ASSERT_TRUE(world.memory->fault(world.begin, 0));
    world.program->bytes[0] = std::byte{1};
    EXPECT_EQ(world.at(0), 0);
    ASSERT_TRUE(world.memory->acquire(world.problem));
    ASSERT_TRUE(world.memory->fault(world.begin, 0));
    EXPECT_EQ(world.at(0), 1);
}

TEST(UnifiedMemory, ComesInLargerPartsWhenReadInOrder) {
    Mirror world(1000);
    for (std::size_t i = 0; i < 1000;) {
        ASSERT_TRUE(world.memory->fault(world.begin + i * page, 0));
        // Pages that came together with it cause no fault of their own.
        unsigned char present;
        while (i < 1000 && mincore(reinterpret_cast<void*>(world.begin + i * page), page, &present) == 0 &&
               (present & 1) != 0)
            ++i;
    }
    EXPECT_LT(world.program->reads, 16U);
}

TEST(UnifiedMemory, ThatTheProgramLacksIsAnError) {
    Mirror world(2);
    EXPECT_FALSE(world.memory->fault(8, 0));
    EXPECT_FALSE(world.memory->fault(world.begin + (1 << 30), 0));
    // The function jumps into data.
    EXPECT_FALSE(world.memory->fault(world.begin, world.begin));
}

TEST(UnifiedMemory, CannotLieWhereThisProcessHasItsOwn) {
    Mirror world(1);
    static std::byte mine[64];
    const auto begin = reinterpret_cast<std::uint64_t>(mine);
    const AddressRange range{begin, begin + sizeof mine};
    std::string problem;
    EXPECT_EQ(world.memory->reserve({&range, 1}, problem), Status::unavailable);
    EXPECT_NE(problem.find("has memory of its own between"), std::string::npos) << problem;
}

}  // namespace
}  // namespace offpath::target
