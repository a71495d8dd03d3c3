// Memory that the device imports (back end xgvmi): allocated and registered. It uses a stand-in for the
// network card (exported_memory_standin.cpp).
#include "harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace offpath::test {
namespace {

constexpr std::size_t bytes = 3 << 20;

class Exported : public testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(daemon.ready()) << daemon.log(); }
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
};

void expect_back_end(offpath_context_h context, const void* memory, std::size_t length,
                     offpath_back_end_t wanted) {
    offpath_back_end_t back_end;
    offpath_progress_t progress;
    expect(offpath_mem_query(context, memory, length, &back_end, &progress), OFFPATH_OK, "query");
    require(back_end == wanted, offpath_back_end_string(back_end));
    require(progress == (wanted == OFFPATH_BACK_END_XGVMI ? OFFPATH_PROGRESS_DEVICE : OFFPATH_PROGRESS_AGENT),
            "progress");
}

std::uint64_t staged(offpath_context_h context) {
    offpath_context_counters_t counters{};
    counters.struct_size = sizeof counters;
    expect(offpath_context_counters(context, &counters), OFFPATH_OK, "counters");
    return counters.agent_bytes;
}

// Moves data of rank 0 to rank 1.
void transfer(const Rank& me, offpath_team_h world, char* memory, std::size_t length, char fill) {
    std::memset(memory, me.rank == 0 ? fill : 0, length);
    offpath_request_h request = nullptr;
    expect(me.rank == 0 ? offpath_send_offload(world, memory, length, 1, 0, &request)
                        : offpath_recv_offload(world, memory, length, 0, 0, &request),
           OFFPATH_OK, "start");
    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
    expect(offpath_request_free(request), OFFPATH_OK, "free");
    require(std::all_of(memory, memory + length, [&](char each) { return each == fill; }), "data");
}

TEST_F(Exported, RegisteredMemoryNeedsNobodyHere) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> memory(bytes + 100);
        char* const odd = memory.data() + 3;  // neither a page's beginning nor its end
        expect_back_end(context, odd, bytes, OFFPATH_BACK_END_STAGED);
        offpath_region_h region = nullptr;
        expect(offpath_mem_register(context, odd, bytes, &region), OFFPATH_OK, "register");
        expect_back_end(context, odd, bytes, OFFPATH_BACK_END_XGVMI);
        expect_back_end(context, odd + 100, 7, OFFPATH_BACK_END_XGVMI);
        expect_back_end(context, odd - 1, 2, OFFPATH_BACK_END_STAGED);
        expect_back_end(context, odd + bytes - 1, 2, OFFPATH_BACK_END_STAGED);
        transfer(me, world, odd, bytes, 'a');
        transfer(me, world, odd + 5, 10000, 'b');
        require(staged(context) == 0, "the device moved all by itself");
        require(memory[2] == 0 && memory[3 + bytes] == 0, "the neighbours");
        expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
        expect_back_end(context, odd, bytes, OFFPATH_BACK_END_STAGED);
        transfer(me, world, odd, bytes, 'c');
        require(staged(context) >= bytes, "by the agent again");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Regions may overlap. Memory that is already a region of the device is not exported again.
TEST_F(Exported, RegionsOverlapAndComeAgain) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> memory(bytes);
        char* const middle = memory.data() + bytes / 2;
        for (int round = 0; round < 20; ++round) {
            offpath_region_h half = nullptr, inside = nullptr, all = nullptr;
            expect(offpath_mem_register(context, memory.data(), bytes / 2, &half), OFFPATH_OK, "half");
            expect(offpath_mem_register(context, memory.data() + 10, 100, &inside), OFFPATH_OK, "inside");
            expect(offpath_mem_register(context, memory.data(), bytes, &all), OFFPATH_OK, "all");
            expect_back_end(context, memory.data(), bytes / 2, OFFPATH_BACK_END_XGVMI);
            expect_back_end(context, middle - 1, 2, OFFPATH_BACK_END_STAGED);
            transfer(me, world, memory.data(), 50000, static_cast<char>(round + 1));
            transfer(me, world, middle - 20000, 40000, static_cast<char>(round + 2));
            expect(offpath_mem_deregister(inside), OFFPATH_OK, "deregister");
            expect_back_end(context, memory.data() + 10, 100, OFFPATH_BACK_END_XGVMI);
            expect(offpath_mem_deregister(half), OFFPATH_OK, "deregister");
            expect(offpath_mem_deregister(all), OFFPATH_OK, "deregister");
            expect_back_end(context, memory.data(), bytes / 2, OFFPATH_BACK_END_STAGED);
        }
        void* allocated = nullptr;
        expect(offpath_mem_alloc(context, bytes, &allocated), OFFPATH_OK, "alloc");
        offpath_region_h region = nullptr;
        expect(offpath_mem_register(context, allocated, bytes, &region), OFFPATH_OK, "register");
        expect_back_end(context, allocated, bytes, OFFPATH_BACK_END_XGVMI);
        transfer(me, world, static_cast<char*>(allocated), bytes, 'z');
        expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
        expect_back_end(context, allocated, bytes, OFFPATH_BACK_END_XGVMI);
        expect(offpath_mem_free(context, allocated), OFFPATH_OK, "free");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Memory that cannot be exported is staged.
TEST_F(Exported, WhatCannotBeExportedIsStaged) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> memory(12345);
        offpath_region_h region = nullptr;
        expect(offpath_mem_register(context, memory.data(), memory.size(), &region), OFFPATH_OK, "register");
        expect_back_end(context, memory.data(), memory.size(), OFFPATH_BACK_END_STAGED);
        transfer(me, world, memory.data(), memory.size(), 'q');
        expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Deregistering waits for operations that still use the memory.
TEST_F(Exported, RegionEndsAfterItsLastUse) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        for (int round = 0; round < 5; ++round) {
            std::vector<char> memory(bytes, me.rank == 0 ? 'x' : ' ');
            offpath_region_h region = nullptr;
            expect(offpath_mem_register(context, memory.data(), bytes, &region), OFFPATH_OK, "register");
            offpath_request_h request = nullptr;
            expect(me.rank == 0 ? offpath_send_offload(world, memory.data(), bytes, 1, 0, &request)
                                : offpath_recv_offload(world, memory.data(), bytes, 0, 0, &request),
                   OFFPATH_OK, "start");
            expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
            require(memory[0] == 'x' && memory[bytes - 1] == 'x', "it has come when deregister returns");
            std::fill(memory.begin(), memory.end(), '!');
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            expect(offpath_request_free(request), OFFPATH_OK, "free");
            require(std::ranges::all_of(memory, [](char each) { return each == '!'; }), "untouched since");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
