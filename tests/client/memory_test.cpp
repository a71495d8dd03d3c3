// Memory through the C API: allocated, ordinary, and unreadable.
#include "back_end_fixture.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace offpath::test {
namespace {

class Memory : public BackEndTest {};
INSTANTIATE_TEST_SUITE_P(BackEnds, Memory, testing::Values("auto", "staged"));

TEST_P(Memory, SaysHowItIsReached) {
    const bool staged = std::string(GetParam()) == "staged" || remote_mode();
    EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_context_info_t info{};
        info.struct_size = sizeof info;
        expect(offpath_context_query(context, &info), OFFPATH_OK, "query");
        require(remote_mode() == (std::string(info.completions) != "shared memory"), info.completions);
        require(!staged || info.default_back_end == OFFPATH_BACK_END_STAGED, "staged, as asked for");
        require(info.default_progress == (info.default_back_end == OFFPATH_BACK_END_STAGED
                                              ? OFFPATH_PROGRESS_AGENT
                                              : OFFPATH_PROGRESS_DEVICE),
                "progress of ordinary memory");
        void* memory = nullptr;
        expect(offpath_mem_alloc(context, 10000, &memory), OFFPATH_OK, "alloc");
        offpath_back_end_t back_end;
        offpath_progress_t progress;
        expect(offpath_mem_query(context, static_cast<char*>(memory) + 5000, 5000, &back_end, &progress),
               OFFPATH_OK, "query");
        if (remote_mode()) {
            require(back_end == OFFPATH_BACK_END_STAGED && progress == OFFPATH_PROGRESS_AGENT, "not shared");
        } else {
            require(back_end == OFFPATH_BACK_END_MAP && progress == OFFPATH_PROGRESS_DEVICE, "map");
        }
        expect(offpath_mem_query(context, &info, sizeof info, &back_end, &progress), OFFPATH_OK, "query");
        require(back_end == info.default_back_end, "ordinary memory");
        expect(offpath_mem_free(context, static_cast<char*>(memory) + 1), OFFPATH_ERR_INVALID,
               "not its start");
        expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
        expect(offpath_mem_free(context, memory), OFFPATH_ERR_INVALID, "twice");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// The program has mapped memory from a file of its own. The device reaches it like memory that offpath has
// allocated. Only a file that cannot shrink is accepted.
TEST_P(Memory, OfTheProgramIsShared) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        constexpr std::size_t bytes = 300000;
        const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        require(fd >= 0 && ftruncate(fd, bytes) == 0, "file");
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        require(memory != MAP_FAILED, "mmap");
        offpath_region_h region = nullptr;
        if (!remote_mode())
            require(offpath_mem_share(context, fd, memory, bytes, &region) < 0, "a file that can shrink");
        require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "seal");
        expect(offpath_mem_share(context, fd, memory, 0, &region), OFFPATH_ERR_INVALID, "no bytes");
        expect(offpath_mem_share(context, -1, memory, bytes, &region), OFFPATH_ERR_INVALID, "no file");
        expect(offpath_mem_share(context, fd, memory, bytes, &region), OFFPATH_OK, "share");
        close(fd);
        offpath_back_end_t back_end;
        offpath_progress_t progress;
        expect(offpath_mem_query(context, memory, bytes, &back_end, &progress), OFFPATH_OK, "query");
        require((back_end == OFFPATH_BACK_END_MAP) == !remote_mode(), "back end");
        auto* const data = static_cast<unsigned char*>(memory);
        std::memset(memory, me.rank == 0 ? 7 : 0, bytes);
        offpath_request_h request = nullptr;
        if (me.rank == 0)
            expect(offpath_send_offload(world, memory, bytes, 1, 0, &request), OFFPATH_OK, "send");
        else
            expect(offpath_recv_offload(world, memory, bytes, 0, 0, &request), OFFPATH_OK, "recv");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        require(data[0] == 7 && data[bytes - 1] == 7, "data");
        expect(offpath_request_free(request), OFFPATH_OK, "free");
        expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
        expect(offpath_mem_query(context, memory, bytes, &back_end, &progress), OFFPATH_OK, "query");
        require(back_end != OFFPATH_BACK_END_MAP, "as any other memory again");
        me.barrier();
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        munmap(memory, bytes);
    }));
}

// The transfer fails with the right error, on the rank that owns the buffer. The session continues.
TEST_P(Memory, ThatCannotBeReadFailsTheTransferOnly) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        void* gone = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::vector<char> data(1 << 20);
        offpath_request_h request = nullptr;
        if (me.rank == 0) {
            expect(offpath_send_offload(world, gone, 1 << 20, 1, 0, &request), OFFPATH_OK, "send");
            expect(offpath_request_wait(request), OFFPATH_ERR_ACCESS, "wait");
        } else {
            expect(offpath_recv_offload(world, data.data(), 1 << 20, 0, 0, &request), OFFPATH_OK, "recv");
            require(offpath_request_wait(request) < 0, "the receiver hears of it");
        }
        expect(offpath_request_free(request), OFFPATH_OK, "free");
        std::uint32_t all[2] = {};
        expect(offpath_iallgather(world, &me.rank, all, 4, &request), OFFPATH_OK, "iallgather");
        expect(offpath_request_wait(request), OFFPATH_OK, "afterwards");
        require(all[1] == 1, "data");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Freeing waits for operations that still use the memory.
TEST_P(Memory, IsLetGoOfAfterItsLastUse) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        constexpr std::size_t bytes = 4 << 20;
        for (int round = 0; round < 4; ++round) {
            void* mapped = nullptr;
            expect(offpath_mem_alloc(context, bytes, &mapped), OFFPATH_OK, "alloc");
            std::vector<char> plain(bytes, 1);
            offpath_region_h region = nullptr;
            expect(offpath_mem_register(context, plain.data(), bytes, &region), OFFPATH_OK, "register");
            offpath_request_h a = nullptr, b = nullptr;
            if (me.rank == 0) {
                std::memset(mapped, round + 1, bytes);
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                expect(offpath_send_offload(world, mapped, bytes, 1, 0, &a), OFFPATH_OK, "send");
                expect(offpath_send_offload(world, plain.data(), bytes, 1, 1, &b), OFFPATH_OK, "send");
                expect(offpath_mem_free(context, mapped), OFFPATH_OK, "free");
                expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
            } else {
                std::memset(plain.data(), 0, bytes);
                expect(offpath_recv_offload(world, mapped, bytes, 0, 0, &a), OFFPATH_OK, "recv");
                expect(offpath_recv_offload(world, plain.data(), bytes, 0, 1, &b), OFFPATH_OK, "recv");
                expect(offpath_mem_deregister(region), OFFPATH_OK, "deregister");
                require(plain[0] == 1 && plain[bytes - 1] == 1, "it has come when deregister returns");
                expect(offpath_mem_free(context, mapped), OFFPATH_OK, "free");
            }
            expect(offpath_request_test(a), OFFPATH_OK, "done by then");
            expect(offpath_request_test(b), OFFPATH_OK, "done by then");
            expect(offpath_request_free(a), OFFPATH_OK, "free");
            expect(offpath_request_free(b), OFFPATH_OK, "free");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// In place, the call needs a copy that is larger than any machine's memory. The call fails, and the context
// survives.
TEST(Memory, RunningOutOfItIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's allocator ends the program instead of throwing";
#endif
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        std::uint32_t word = me.rank;
        offpath_request_h request = nullptr;
        constexpr std::size_t absurd = std::size_t{1} << 45;
        expect(offpath_ialltoall(me.world(context), OFFPATH_IN_PLACE, &word, absurd, &request),
               OFFPATH_ERR_MEMORY, "a copy of 64 TiB");
        expect(offpath_ibarrier(me.world(context), &request), OFFPATH_OK, "barrier");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(10), std::vector<int>({0, 0}));
}

}  // namespace
}  // namespace offpath::test
