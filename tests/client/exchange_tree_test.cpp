// The tree over which a job's processes exchange data: its shape, allgathers of real processes, several
// programs in turn as the same ranks, and processes that are killed.
#include "client/exchange_tree.h"
#include "client/exchange_link.h"
#include "control/messages.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

namespace offpath::client {
namespace {

constexpr std::uint32_t most_ranks = 32;

// The data store of the launcher's server, in memory that all processes share.
class SharedBoard final : public Board {
  public:
    explicit SharedBoard(std::uint32_t rank) : rank_(rank) {}
    static void open() {
        void* const memory =
            mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        state = new (memory) State;
    }
    static void close() { munmap(state, sizeof *state); }
    static std::uint32_t published(std::uint32_t rank) { return state->entries[rank].count; }

    Status publish(std::span<const std::byte> record) override {
        if (unsupported) return Status::unsupported;
        if (record.size() > sizeof(Entry::bytes)) return Status::invalid;
        const Guard guard;
        Entry& entry = state->entries[rank_];
        std::copy(record.begin(), record.end(), entry.bytes);
        entry.size = record.size();
        ++entry.count;
        return Status::ok;
    }
    Status look_up(std::uint32_t rank, std::vector<std::byte>& record) override {
        if (unsupported) return Status::unsupported;
        const Guard guard;
        const Entry& entry = state->entries[rank];
        if (entry.size == 0) return Status::unavailable;
        record.assign(entry.bytes, entry.bytes + entry.size);
        return Status::ok;
    }
    bool unsupported = false;

  private:
    struct Entry {
        std::byte bytes[512];
        std::size_t size = 0;
        std::atomic<std::uint32_t> count{0};
    };
    struct State {
        std::atomic_flag busy;
        Entry entries[most_ranks];
    };
    struct Guard {
        Guard() {
            while (state->busy.test_and_set())
                std::this_thread::yield();
        }
        ~Guard() { state->busy.clear(); }
    };
    static inline State* state = nullptr;
    const std::uint32_t rank_;
};

class ExchangeTreeTest : public testing::Test {
  protected:
    void SetUp() override { SharedBoard::open(); }
    void TearDown() override {
        for (const pid_t pid : running_) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        SharedBoard::close();
    }
    // `body` returns whether everything was right.
    pid_t start(const std::function<bool()>& body) {
        const pid_t pid = fork();
        if (pid == 0) _exit(body() ? 0 : 1);
        running_.push_back(pid);
        return pid;
    }
    void end(pid_t pid) {
        kill(pid, SIGKILL);
        (void)right(pid);
    }
    bool right(pid_t pid) {
        int status = 0;
        waitpid(pid, &status, 0);
        std::erase(running_, pid);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }

  private:
    std::vector<pid_t> running_;
};

// Every rank sends its number and that of its program, in records of several sizes.
bool exchange(ExchangeTree& tree, std::uint32_t rank, std::uint32_t size, std::uint32_t program) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{70'000}, std::size_t{1000}}) {
        std::vector<std::byte> mine(bytes, static_cast<std::byte>(16 * program + rank));
        std::vector<std::byte> all(bytes * size);
        if (tree.allgather(mine, all) != Status::ok) return false;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i] != static_cast<std::byte>(16 * program + i / bytes)) return false;
    }
    return true;
}

bool run_program(std::uint32_t rank, std::uint32_t size, std::uint32_t fan_out, std::uint32_t program) {
    SharedBoard board(rank);
    ExchangeTree tree(board, rank, size, fan_out);
    std::string problem;
    return tree.join(problem) == Status::ok && exchange(tree, rank, size, program);
}

TEST(TreePlace, EverybodyHasOneParentAndARangeBelow) {
    for (std::uint32_t fan_out : {1u, 2u, 3u, 32u}) {
        for (std::uint32_t size = 1; size <= 100; ++size) {
            std::vector<int> parents(size, 0);
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                const TreePlace place = tree_place(rank, size, fan_out);
                ASSERT_LE(place.children.size(), fan_out);
                std::uint32_t next = rank + 1;
                for (const TreePlace::Child& child : place.children) {
                    ASSERT_EQ(child.rank, next);
                    const TreePlace below = tree_place(child.rank, size, fan_out);
                    ASSERT_EQ(below.parent, rank);
                    ASSERT_EQ(below.end, child.end);
                    next = child.end;
                    ++parents[child.rank];
                }
                ASSERT_EQ(next, place.end);
            }
            ASSERT_EQ(tree_place(0, size, fan_out).end, size);
            ASSERT_EQ(std::count(parents.begin() + 1, parents.end(), 1), size - 1);
        }
    }
}

TEST_F(ExchangeTreeTest, GathersOverTreesOfAllDepths) {
    for (const auto& [size, fan_out] : {std::pair{1u, 2u}, {2u, 2u}, {5u, 1u}, {8u, 2u}, {9u, 32u}}) {
        std::vector<pid_t> processes;
        for (std::uint32_t rank = 0; rank < size; ++rank)
            processes.push_back(start([=] { return run_program(rank, size, fan_out, 3); }));
        for (const pid_t process : processes)
            EXPECT_TRUE(right(process)) << size << " ranks, " << fan_out << " below one";
    }
}

TEST_F(ExchangeTreeTest, ProgramsInTurnAreKeptApart) {
    constexpr std::uint32_t size = 5;
    std::vector<pid_t> processes;
    for (std::uint32_t rank = 0; rank < size; ++rank)
        processes.push_back(start([=] {
            for (std::uint32_t program = 0; program < 12; ++program) {
                if (!run_program(rank, size, 2, program)) return false;
                // Each time another rank is late.
                if (program % size == rank) std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
            return true;
        }));
    for (const pid_t process : processes)
        EXPECT_TRUE(right(process));
}

TEST_F(ExchangeTreeTest, KilledProcessesAreReplacedUntilTheTreeStands) {
    // Rank 0 is the root, 1 its child, then 2, then 3. Rank 0 comes last.
    constexpr std::uint32_t size = 4;
    const auto run = [&](std::uint32_t rank) { return start([=] { return run_program(rank, size, 1, 7); }); };
    const auto wait_published = [](std::uint32_t rank, std::uint32_t times) {
        while (SharedBoard::published(rank) < times)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    std::vector<pid_t> processes{0, run(1), run(2), run(3)};
    wait_published(1, 1);
    wait_published(2, 1);
    for (const std::uint32_t rank : {3u, 2u, 1u, 2u}) {
        // They are killed after they have connected, and sometimes while they connect.
        std::this_thread::sleep_for(std::chrono::milliseconds(30 * (rank % 2)));
        end(processes[rank]);
        processes[rank] = run(rank);
    }
    wait_published(2, 3);
    processes[0] = run(0);
    for (const pid_t process : processes)
        EXPECT_TRUE(right(process));
}

TEST_F(ExchangeTreeTest, AProcessOfTheLastProgramTakesNoCalls) {
    const auto last_and_next = [](std::uint32_t rank) {
        return [=] {
            {
                SharedBoard board(rank);
                ExchangeTree tree(board, rank, 2);
                std::string problem;
                if (tree.join(problem) != Status::ok || !exchange(tree, rank, 2, 1)) return false;
                // Rank 1 calls meanwhile.
                if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
            return run_program(rank, 2, 32, 2);
        };
    };
    const pid_t first = start(last_and_next(0)), second = start(last_and_next(1));
    EXPECT_TRUE(right(first));
    EXPECT_TRUE(right(second));
}

TEST_F(ExchangeTreeTest, ALossAfterTheTreeStandsIsAnError) {
    std::vector<pid_t> processes;
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        processes.push_back(start([=] {
            SharedBoard board(rank);
            ExchangeTree tree(board, rank, 4, 2);
            std::string problem;
            if (tree.join(problem) != Status::ok || !exchange(tree, rank, 4, 0)) return false;
            if (rank == 3) return true;
            const std::byte mine{1};
            std::byte all[4];
            return tree.allgather({&mine, 1}, all) == Status::peer_lost;
        }));
    for (const pid_t process : processes)
        EXPECT_TRUE(right(process));
}

// A child whose library speaks another version of the protocol. It calls until its parent hangs up.
class OtherVersion final : transport::Handler {
  public:
    static bool call(std::uint16_t version) {
        OtherVersion self;
        SharedBoard board(1);
        std::vector<std::byte> bytes;
        while (board.look_up(0, bytes) == Status::unavailable)
            std::this_thread::yield();
        ExchangeRecord record;
        transport::TcpConfig config;
        config.listen = false;
        std::unique_ptr<transport::Transport> made;
        std::string problem;
        transport::Endpoint* endpoint = nullptr;
        if (!record.read(bytes) || transport::make_tcp_transport(config, made, problem) != Status::ok ||
            made->connect(record.address, &endpoint) != Status::ok)
            return false;
        made->set_handler(&self);
        const ExchangeHeader header{ExchangeHeader::Kind::handshake, 1, 0};
        auto message = control::encode_message(control::DirectCall{made->address()});
        std::memcpy(&message[4], &version, sizeof version);
        (void)made->post(*endpoint, std::as_bytes(std::span(&header, 1)), message);
        while (!self.lost_)
            (void)made->progress();
        made->set_handler(nullptr);
        return true;
    }

  private:
    void on_message(const transport::Incoming&) override {}
    void on_endpoint_lost(transport::Endpoint&) override { lost_ = true; }
    bool lost_ = false;
};

TEST_F(ExchangeTreeTest, ALibraryOfAnotherVersionEndsTheMeeting) {
    for (const int difference : {-1, 1}) {
        const auto version = static_cast<std::uint16_t>(control::protocol_version + difference);
        SharedBoard::close();
        SharedBoard::open();
        const pid_t child = start([=] { return OtherVersion::call(version); });
        {
            SharedBoard board(0);
            ExchangeTree tree(board, 0, 2);
            std::string problem;
            EXPECT_EQ(tree.join(problem), Status::version);
            EXPECT_EQ(problem.find("rank 1: it speaks protocol version " + std::to_string(version)), 0u)
                << problem;
        }
        EXPECT_TRUE(right(child));
    }
}

TEST_F(ExchangeTreeTest, SaysWhereTheServerHasNoStore) {
    for (std::uint32_t rank : {0u, 1u}) {
        SharedBoard board(rank);
        board.unsupported = true;
        ExchangeTree tree(board, rank, 2);
        std::string problem;
        EXPECT_EQ(tree.join(problem), Status::unsupported);
    }
}

}  // namespace
}  // namespace offpath::client
