// What every line does, over shared memory and over TCP: bytes in order whatever the sizes, sleepers that
// wake, the end of the other side.
#include "control/life_signs.h"
#include "lines.h"
#include "target/record_io.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

namespace offpath::target {
namespace {

class Lines : public testing::TestWithParam<Ends (*)()> {
  protected:
    Ends ends = GetParam()();
};

std::vector<std::byte> numbered(std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    return data;
}

// Reads until `bytes` have come, and sleeps while there is nothing to read.
std::vector<std::byte> read_all(Line& line, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    std::size_t done = 0;
    while (done < bytes && !(line.lost() && !line.readable())) {
        const std::size_t got =
            line.read(std::span(data).subspan(done, std::min<std::size_t>(bytes - done, 70001)));
        done += got;
        if (got == 0) line.sleep(1'000'000'000);
    }
    data.resize(done);
    return data;
}

TEST_P(Lines, CarryMoreBytesThanFitInOrder) {
    const auto data = numbered(5 * SharedLine::ring_bytes + 12345);
    std::thread writer(
        [&] { EXPECT_TRUE(write_all(*ends.program, data, [&] { ends.program->sleep(1'000'000'000); })); });
    EXPECT_TRUE(read_all(*ends.host, data.size()) == data);
    writer.join();
}

TEST_P(Lines, CarryBothDirectionsAtOnce) {
    const auto data = numbered(3 * SharedLine::ring_bytes);
    const auto exchange = [&](Line& line) {
        std::thread writer([&] { EXPECT_TRUE(write_all(line, data, [&] { line.sleep(1'000'000); })); });
        EXPECT_TRUE(read_all(line, data.size()) == data);
        writer.join();
    };
    std::thread host([&] { exchange(*ends.host); });
    exchange(*ends.program);
    host.join();
}

TEST_P(Lines, CarryRecordsWhole) {
    std::mt19937 random(7);
    std::vector<std::vector<std::byte>> payloads;
    for (int i = 0; i < 200; ++i)
        payloads.push_back(numbered(random() % (i % 10 == 0 ? 300000 : 3000)));
    std::thread writer([&] {
        std::uint64_t number = 0;
        for (const auto& payload : payloads) {
            std::vector<std::byte> record;
            ++number;
            append_record(record, number, 3, Put{number}, payload);
            EXPECT_TRUE(write_all(*ends.program, record, [&] { ends.program->sleep(1'000'000); }));
        }
    });
    RecordReader reader(*ends.host);
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        Head head;
        while (!reader.next(head))
            ends.host->sleep(1'000'000);
        Put put;
        ASSERT_EQ(head.kind, Kind::put);
        ASSERT_EQ(head.number, i + 1);
        ASSERT_EQ(head.bytes, sizeof put + payloads[i].size());
        ASSERT_TRUE(reader.body(put));
        std::vector<std::byte> payload(payloads[i].size());
        ASSERT_TRUE(reader.take(payload));
        ASSERT_TRUE(payload == payloads[i]) << "record " << i;
    }
    writer.join();
}

TEST_P(Lines, WakeASleeperForBytesAndForACall) {
    using Clock = std::chrono::steady_clock;
    // Shorter than the interval at which the other side's life is checked.
    constexpr std::uint64_t limit_ns = 40'000'000;
    const pid_t sleeper = gettid();
    // A sleep that ends with its limit lasts that long. A shorter one was ended by `wake`. On a loaded
    // machine that may take longer than the limit, so this goes on until a sleep was shorter.
    const auto shortened = [&](auto&& wake) {
        for (const auto end = Clock::now() + std::chrono::seconds(60); Clock::now() < end;) {
            std::thread other([&] {
                while (control::thread_state(getpid(), sleeper).letter != 'S')
                    std::this_thread::yield();
                wake();
            });
            const auto begun = Clock::now();
            ends.host->sleep(limit_ns);
            const auto took = Clock::now() - begun;
            other.join();
            std::byte rest[64];
            while (ends.host->read(rest) > 0) {
            }
            if (took < std::chrono::nanoseconds(limit_ns)) return true;
        }
        return false;
    };
    EXPECT_TRUE(shortened([&] { ends.host->wake(); }));
    EXPECT_TRUE(shortened([&] {
        const auto data = numbered(8);
        EXPECT_EQ(ends.program->write(data), data.size());
    }));
}

TEST_P(Lines, WakeNobodyWhileAttended) {
    const auto data = numbered(8);
    ends.host->attend();
    std::thread sleeper([&] { ends.host->sleep(30'000'000); });
    EXPECT_EQ(ends.program->write(data), data.size());
    sleeper.join();
    // When the attending thread leaves, data that are there wake the next thread.
    ends.host->leave();
    EXPECT_EQ(read_all(*ends.host, data.size()), data);
}

TEST_P(Lines, KeepWhatWasWrittenBeforeTheEnd) {
    const auto data = numbered(1000);
    EXPECT_EQ(ends.program->write(data), data.size());
    ends.program->hang_up();
    ends.program.reset();
    EXPECT_EQ(read_all(*ends.host, data.size()), data);
    std::byte more[8];
    for (int i = 0; i < 200 && !ends.host->lost(); ++i) {
        (void)ends.host->read(more);
        ends.host->sleep(10'000'000);
    }
    EXPECT_TRUE(ends.host->lost());
}

INSTANTIATE_TEST_SUITE_P(By, Lines, testing::Values(&shared_ends, &tcp_ends),
                         [](const auto& each) { return each.index == 0 ? "SharedMemory" : "Tcp"; });

}  // namespace
}  // namespace offpath::target
