// Copies on which a target host and its program both work.
#include "lines.h"
#include "target/host/joint_copies.h"
#include "target/program/answers.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace offpath::target {
namespace {

constexpr std::uint64_t pieces = 5;
constexpr std::uint64_t copied_bytes = pieces * JointCopy::piece_bytes - 100;

bool ends_soon(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done();
}

// Both sides in one process.
struct Copying {
    Copying() { std::iota(source.begin(), source.end(), 1U); }

    // The host's thread copies from `source` to `sink` and answers `sync`. It waits with its first piece
    // until `first` is true.
    Status copy(std::uint64_t number, std::uint64_t sync, const std::function<bool()>& first) {
        const auto send = [&](const auto& body, std::uint64_t about) {
            std::vector<std::byte> record;
            append_record(record, about, 0, body);
            EXPECT_EQ(ends.host->write(record), record.size());
        };
        const auto own = [&](std::uint64_t offset, std::uint64_t part) {
            const bool waits = host_pieces++ == 0;
            EXPECT_TRUE(!waits || ends_soon(first));
            std::memcpy(to() + offset, from() + offset, part);
            return Status::ok;
        };
        const Status status = host.run(copied_bytes, own, [&](Join join) {
            change(join);
            send(join, number);
        });
        send(Done{static_cast<std::int32_t>(status), 0, 0}, sync);
        return status;
    }
    std::byte* from() { return reinterpret_cast<std::byte*>(source.data()); }
    std::byte* to() { return reinterpret_cast<std::byte*>(sink.data()); }
    bool same() { return std::memcmp(from(), to(), copied_bytes) == 0; }
    JointCopy& joint() { return ends.program->joint()->copies[0]; }

    Ends ends = shared_ends();
    Answers answers{*ends.program, [](int, const std::string&) {}, 1000, 0, true};
    JointCopies host{*ends.host};
    std::function<void(Join&)> change = [](Join&) {};
    int host_pieces = 0;
    std::vector<std::uint32_t> source = std::vector<std::uint32_t>(copied_bytes / 4),
                               sink = std::vector<std::uint32_t>(copied_bytes / 4);
};

class JointCopyTest : public ::testing::TestWithParam<ExpectedCopy::Way> {};

TEST_P(JointCopyTest, TheProgramThatWaitsTakesPieces) {
    Copying world;
    const bool to_host = GetParam() == ExpectedCopy::Way::to_host;
    const auto number = world.answers.expect_copy(
        {GetParam(), to_host ? world.from() : world.to(),
         reinterpret_cast<std::uint64_t>(to_host ? world.to() : world.from()), copied_bytes});
    const auto sync = world.answers.expect();
    // The host's one piece is the last to be done.
    std::thread host([&] {
        EXPECT_EQ(world.copy(number, sync,
                             [&] { return world.joint().copied() >= copied_bytes - JointCopy::piece_bytes; }),
                  Status::ok);
    });
    EXPECT_EQ(world.answers.wait(sync).status, Status::ok);
    host.join();
    EXPECT_LE(world.host_pieces, 1);  // none where the host's thread comes late
    EXPECT_TRUE(world.same());
}

INSTANTIATE_TEST_SUITE_P(, JointCopyTest,
                         ::testing::Values(ExpectedCopy::Way::to_host, ExpectedCopy::Way::from_host),
                         [](const auto& each) {
                             return each.param == ExpectedCopy::Way::to_host ? "ToHost" : "FromHost";
                         });

// The program reaches into no process but its host's, and into no memory that it has not named.
TEST(JointCopy, ALyingHostGetsNoHelp) {
    const std::vector<std::function<void(Join&)>> lies = {
        [](Join& join) { join.token += 8; },
        [](Join& join) { join.pid = static_cast<std::uint64_t>(getppid()); },
        [](Join& join) { join.place = JointArea::places; },
        [](Join& join) { join.generation += 1; },
    };
    for (std::size_t i = 0; i <= lies.size(); ++i) {
        Copying world;
        if (i < lies.size()) world.change = lies[i];
        const auto number =
            world.answers.expect_copy({ExpectedCopy::Way::to_host, world.from(),
                                       reinterpret_cast<std::uint64_t>(world.to()), copied_bytes});
        const auto sync = world.answers.expect();
        std::thread host([&] {
            EXPECT_EQ(world.copy(number + (i == lies.size()), sync, [] { return true; }), Status::ok);
        });
        EXPECT_EQ(world.answers.wait(sync).status, Status::ok);
        host.join();
        EXPECT_EQ(world.host_pieces, static_cast<int>(pieces)) << i;
        EXPECT_TRUE(world.same()) << i;
    }
}

TEST(JointCopy, TheHostCopiesWhatTheProgramCannot) {
    Copying world;
    JointCopy::Piece piece;
    const auto fail_one = [&] {
        if (piece.bytes == 0 && world.joint().take(1, copied_bytes, piece)) world.joint().failed(piece.bytes);
        return true;
    };
    EXPECT_EQ(world.copy(0, 0, fail_one), Status::ok);
    EXPECT_TRUE(world.same());
    EXPECT_EQ(piece.offset, JointCopy::piece_bytes);
}

TEST(JointCopy, AProgramThatIsLateTakesNothing) {
    JointCopy copy{};
    JointCopy::Piece piece;
    const auto first = copy.begin(), second = copy.begin();
    EXPECT_FALSE(copy.take(first, copied_bytes, piece));
    std::uint64_t taken = 0;
    while (copy.take(second, copied_bytes, piece))
        taken += piece.bytes;
    EXPECT_EQ(taken, copied_bytes);
    EXPECT_FALSE(copy.take(second, copied_bytes, piece));
}

TEST(JointCopy, EndsWithAProgramThatIsLost) {
    Copying world;
    JointCopy::Piece piece;
    const auto leave = [&] {
        if (piece.bytes == 0 && world.joint().take(1, copied_bytes, piece)) world.ends.program->hang_up();
        return true;
    };
    std::thread host([&] { EXPECT_EQ(world.copy(0, 0, leave), Status::peer_lost); });
    host.join();
}

}  // namespace
}  // namespace offpath::target
