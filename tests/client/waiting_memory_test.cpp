// Memory whose pages arrive late or never, as with a file system that hangs. It delays the operations that
// use it and no others. Here a userfaultfd takes the place of the file system.
#include "harness.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace offpath::test {
namespace {

constexpr std::size_t page = 4096, bytes = 4 << 20;

// Memory that has no pages until serve() brings them, filled with 'p'.
class LateMemory {
  public:
    LateMemory() {
        memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
        uffdio_api api{UFFD_API, 0, 0};
        uffdio_register range{};
        range.range = {reinterpret_cast<std::uintptr_t>(memory_), bytes};
        range.mode = UFFDIO_REGISTER_MODE_MISSING;
        made_ = fd_ >= 0 && ioctl(fd_, UFFDIO_API, &api) == 0 && ioctl(fd_, UFFDIO_REGISTER, &range) == 0;
    }
    bool made() const { return made_; }
    char* data() const { return static_cast<char*>(memory_); }

    // Serves pages from now on, until `over`.
    void serve(const std::atomic<bool>& over) const {
        std::vector<char> content(page, 'p');
        while (!over) {
            pollfd entry{fd_, POLLIN, 0};
            uffd_msg message{};
            if (poll(&entry, 1, 20) <= 0 || read(fd_, &message, sizeof message) != sizeof message) continue;
            uffdio_copy copy{};
            copy.dst = message.arg.pagefault.address / page * page;
            copy.src = reinterpret_cast<std::uintptr_t>(content.data());
            copy.len = page;
            ioctl(fd_, UFFDIO_COPY, &copy);
        }
    }

  private:
    void* memory_;
    int fd_;
    bool made_ = false;
};

// Without userfaultfd for kernel faults, the kernel itself may not wait for such pages.
bool allowed() {
    return LateMemory().made();
}

// Exchanges between ranks that do not use such memory.
void others(const Rank& me) {
    offpath_context_h context = me.init();
    offpath_team_h world = me.world(context);
    for (int i = 0; i < 100; ++i) {
        std::vector<int> out(me.size * 50000, i), in(out.size());
        offpath_request_h request = nullptr;
        expect(offpath_ialltoall(world, out.data(), in.data(), 200000, &request), OFFPATH_OK, "start");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        offpath_request_free(request);
        require(std::all_of(in.begin(), in.end(), [i](int each) { return each == i; }), "data");
    }
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

// Sends and receives, small and large, use memory that never answers.
TEST(WaitingMemory, HoldsUpNobodyElse) {
    if (!allowed()) GTEST_SKIP() << "userfaultfd with faults of the kernel needs a privilege";
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job stuck(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        LateMemory late;
        std::vector<char> there(bytes, 't');
        offpath_request_h request = nullptr;
        for (std::uint32_t i = 0; i < 6; ++i) {
            const std::size_t length = i % 2 == 0 ? 1000 : bytes;
            const bool from_late = i < 3;
            if (me.rank == 0) {
                expect(offpath_send_offload(world, from_late ? late.data() : there.data(), length, 1, i,
                                            &request),
                       OFFPATH_OK, "send");
            } else {
                expect(offpath_recv_offload(world, from_late ? there.data() : late.data(), length, 0, i,
                                            &request),
                       OFFPATH_OK, "recv");
            }
        }
        static_cast<std::atomic<std::uint32_t>*>(me.shared)->fetch_add(1);
        offpath_request_wait(request);
        while (true)
            pause();
    });
    wait_until_started(stuck, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_TRUE(all_right(2, directory.path(), others));
    for (const std::uint32_t rank : {0u, 1u})
        kill(stuck.pid(rank), SIGKILL);
    EXPECT_EQ(stuck.wait(10), (std::vector<int>{-1, -1}));
    EXPECT_TRUE(all_right(2, directory.path(), others));
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.wait(), 0);
}

TEST(WaitingMemory, ThatAnswersLateIsCopiedAsAnyOther) {
    if (!allowed()) GTEST_SKIP() << "userfaultfd with faults of the kernel needs a privilege";
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        for (const std::size_t length : {std::size_t{1000}, bytes - 5000}) {
            LateMemory late;
            char* const buffer = late.data() + 2500;
            std::atomic<bool> over{false};
            offpath_request_h request = nullptr;
            std::vector<char> wanted(length, 'p');
            if (me.rank == 0) {
                expect(offpath_send_offload(world, buffer, length, 1, 1, &request), OFFPATH_OK, "send");
            } else {
                std::fill(wanted.begin(), wanted.end(), 'p');
                expect(offpath_recv_offload(world, buffer, length, 0, 1, &request), OFFPATH_OK, "recv");
            }
            std::thread server([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                late.serve(over);
            });
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            offpath_request_free(request);
            require(std::equal(wanted.begin(), wanted.end(), buffer), "data");
            over = true;
            server.join();
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Many pieces are put, got and accumulated. Meanwhile the same rank's operations on other memory complete.
TEST(WaitingMemory, OfAWindowHoldsUpItsPiecesOnly) {
    if (!allowed()) GTEST_SKIP() << "userfaultfd with faults of the kernel needs a privilege";
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        auto& turn = *static_cast<std::atomic<std::uint32_t>*>(me.shared);
        std::vector<offpath_segment_t> segments;
        for (std::uint64_t at = 2; at + 4 <= bytes; at += 1022)  // some over the end of a page
            segments.push_back({at, 4});
        const auto count = static_cast<std::uint32_t>(segments.size());
        const offpath_place_t all{1, 0, segments.data(), count}, there{0, 8, nullptr, 0};
        for (std::uint32_t round = 0; round < 3; ++round) {
            LateMemory late;
            std::vector<char> plain(4096);
            std::atomic<bool> over{false};
            offpath_window_h window = nullptr;
            expect(offpath_window_create(world, me.rank == 1 ? late.data() : plain.data(),
                                         me.rank == 1 ? bytes : plain.size(), &window),
                   OFFPATH_OK, "create");
            std::thread server;
            if (me.rank == 0) {
                std::vector<std::uint32_t> ours(count, 7), wanted(count, round == 0 ? 7 : 0x70707070);
                offpath_request_h waits = nullptr, goes = nullptr;
                if (round == 0)
                    expect(offpath_put(window, ours.data(), 4 * count, &all, &waits), OFFPATH_OK, "put");
                if (round == 1)
                    expect(offpath_get(window, ours.data(), 4 * count, &all, &waits), OFFPATH_OK, "get");
                if (round == 2)
                    expect(offpath_accumulate(window, ours.data(), count, OFFPATH_UINT32, OFFPATH_SUM, &all,
                                              &waits),
                           OFFPATH_OK, "accumulate");
                for (int i = 0; i < 100; ++i) {
                    expect(offpath_put(window, ours.data(), 1000, &there, &goes), OFFPATH_OK, "put");
                    expect(offpath_request_wait(goes), OFFPATH_OK, "what does not wait");
                    offpath_request_free(goes);
                }
                turn = round + 1;
                expect(offpath_request_wait(waits), OFFPATH_OK, "what waits");
                offpath_request_free(waits);
                if (round == 2) wanted.assign(count, 0x70707077);
                std::vector<std::uint32_t> back(count);
                expect(offpath_get(window, back.data(), 4 * count, &all, &waits), OFFPATH_OK, "get");
                expect(offpath_request_wait(waits), OFFPATH_OK, "get");
                offpath_request_free(waits);
                require(back == wanted && (round != 1 || ours == wanted), "data");
            } else {
                server = std::thread([&] {
                    while (turn <= round)
                        std::this_thread::yield();
                    late.serve(over);
                });
            }
            expect(offpath_window_destroy(window), OFFPATH_OK, "destroy");
            over = true;
            if (server.joinable()) server.join();
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Pages that were never touched, and files: their contents exist already or come at once.
TEST(WaitingMemory, OrdinaryPagesThatAreNotThereYet) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        const std::string name = me.directory + "/file" + std::to_string(me.rank);
        const int file = open(name.c_str(), O_RDWR | O_CREAT, 0600);
        const int memory_file = memfd_create("buffer", MFD_CLOEXEC);
        require(ftruncate(file, bytes) == 0 && ftruncate(memory_file, bytes) == 0, "ftruncate");
        const auto map = [](int flags, int fd) {
            return static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0));
        };
        char* const buffers[] = {map(MAP_PRIVATE | MAP_ANONYMOUS, -1), map(MAP_SHARED | MAP_ANONYMOUS, -1),
                                 map(MAP_SHARED, memory_file), map(MAP_SHARED, file), map(MAP_PRIVATE, file)};
        for (char* const buffer : buffers) {
            for (int round = 0; round < 3; ++round) {
                std::vector<char> out(bytes, static_cast<char>('a' + round));
                offpath_request_h request = nullptr;
                if (me.rank == 0) {
                    expect(
                        offpath_send_offload(world, round == 2 ? buffer : out.data(), bytes, 1, 1, &request),
                        OFFPATH_OK, "send");
                } else {
                    expect(offpath_recv_offload(world, buffer, bytes, 0, 1, &request), OFFPATH_OK, "recv");
                }
                expect(offpath_request_wait(request), OFFPATH_OK, "wait");
                offpath_request_free(request);
                // In the last round the sender's buffer was never touched.
                if (me.rank == 1 && round < 2) require(std::equal(out.begin(), out.end(), buffer), "data");
                if (me.rank == 1 && round == 2)
                    require(std::all_of(buffer, buffer + bytes, [](char c) { return c == 0; }), "zeros");
            }
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
