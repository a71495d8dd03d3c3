// The staged back end: its pipeline, how it sleeps and wakes, and a client that sends false answers.
#include "host_process.h"
#include "memory/staging_area.h"

#include <random>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace offpath::memory::test {
namespace {

class StagedTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string problem;
        ASSERT_EQ(make_session_memory(host_.config(GeneralBackEnd::staged), memory_, problem), Status::ok)
            << problem;
        files_ = memory_->take_staging_files();
        ASSERT_TRUE(files_.area && files_.bell);
        ASSERT_FALSE(memory_->take_staging_files().area) << "handed out once";
    }
    void start_agent() { ASSERT_EQ(host_.start_agent(std::move(files_)), Status::ok); }

    HostProcess host_;
    std::unique_ptr<SessionMemory> memory_;
    StagingFiles files_;
};

TEST_F(StagedTest, ManyTransfersBothWaysAtOnce) {
    start_agent();
    constexpr std::uint64_t bytes = 100001;  // seven chunks, the last one short
    constexpr std::uint64_t transfers = 12;
    const std::uint64_t sources = host_.allocate(bytes * transfers),
                        targets = host_.allocate(bytes * transfers);
    std::vector<std::vector<std::byte>> out(transfers), in(transfers, std::vector<std::byte>(bytes));
    std::vector<Arrival> arrivals(2 * transfers);
    for (std::uint64_t i = 0; i < transfers; ++i) {
        host_.fill(sources + i * bytes, bytes, i);
        out[i] = pattern_bytes(50 + i, bytes);
    }
    for (std::uint64_t i = 0; i < transfers; ++i) {
        ASSERT_EQ(memory_->read({0, sources + i * bytes, bytes}, 0, in[i].data(), bytes, &arrivals[2 * i]),
                  Status::in_progress);
        ASSERT_EQ(
            memory_->write({0, targets + i * bytes, bytes}, 0, out[i].data(), bytes, &arrivals[2 * i + 1]),
            Status::in_progress);
    }
    EXPECT_FALSE(memory_->drained());
    for (const Arrival& arrival : arrivals)
        wait_for(*memory_, arrival);
    EXPECT_TRUE(memory_->drained());
    for (std::uint64_t i = 0; i < transfers; ++i) {
        EXPECT_EQ(arrivals[2 * i].status, Status::ok);
        EXPECT_EQ(arrivals[2 * i + 1].status, Status::ok);
        EXPECT_EQ(arrivals[2 * i].calls, 1);
        EXPECT_EQ(in[i], pattern_bytes(i, bytes));
        EXPECT_EQ(host_.contents(targets + i * bytes, bytes), out[i]);
    }
}

TEST_F(StagedTest, ABadTransferHarmsNoOther) {
    start_agent();
    constexpr std::uint64_t bytes = 200000;
    const std::uint64_t good = host_.allocate(bytes);
    host_.fill(good, bytes, 4);
    std::vector<std::byte> first(bytes), second(bytes), lost(bytes);
    Arrival good_first, bad, bad_write, good_second;
    ASSERT_EQ(memory_->read({0, good, bytes}, 0, first.data(), bytes, &good_first), Status::in_progress);
    ASSERT_EQ(memory_->read({0, 8192, bytes}, 0, lost.data(), bytes, &bad), Status::in_progress);
    ASSERT_EQ(memory_->write({0, 8192, bytes}, 0, lost.data(), bytes, &bad_write), Status::in_progress);
    ASSERT_EQ(memory_->read({0, good, bytes}, 0, second.data(), bytes, &good_second), Status::in_progress);
    for (const Arrival* arrival : {&good_first, &bad, &bad_write, &good_second})
        wait_for(*memory_, *arrival);
    EXPECT_EQ(bad.status, Status::access);
    EXPECT_EQ(bad_write.status, Status::access);
    EXPECT_EQ(first, pattern_bytes(4, bytes));
    EXPECT_EQ(second, first);
    EXPECT_TRUE(memory_->drained());
}

// The completion starts the next transfer, as the engine's do.
struct Chain : Completion {
    explicit Chain(SessionMemory& m) : memory(m) {
        function = [](Completion* self, Status with) { static_cast<Chain*>(self)->next(with); };
    }
    void next(Status with) {
        status = with;
        if (with == Status::ok && --left > 0) memory.read(range, 0, to.data(), to.size(), this);
    }
    SessionMemory& memory;
    HostRange range;
    std::vector<std::byte> to;
    int left = 0;
    Status status = Status::in_progress;
};

TEST_F(StagedTest, CompletionsMayStartTransfers) {
    start_agent();
    Chain chain(*memory_);
    chain.to.resize(40000);
    chain.range = {0, host_.allocate(40000), 40000};
    host_.fill(chain.range.address, 40000, 8);
    chain.left = 20;
    ASSERT_EQ(memory_->read(chain.range, 0, chain.to.data(), chain.to.size(), &chain), Status::in_progress);
    for (int i = 0; i < 100000 && chain.left > 0; ++i) {
        pollfd ready{memory_->event_fd(), POLLIN, 0};
        if (memory_->progress() == 0 && memory_->arm() == Status::ok) poll(&ready, 1, 1000);
    }
    EXPECT_EQ(chain.left, 0);
    EXPECT_EQ(chain.to, pattern_bytes(8, 40000));
    EXPECT_TRUE(memory_->drained());
}

TEST_F(StagedTest, StopWaitsForWhatTheAgentIsCopying) {
    constexpr std::uint64_t bytes = 200000;  // more than the slots hold
    const std::uint64_t address = host_.allocate(bytes);
    std::vector<std::byte> data(bytes, std::byte{1}), other(bytes);
    Arrival running, queued;
    ASSERT_EQ(memory_->write({0, address, bytes}, 0, data.data(), bytes, &running), Status::in_progress);
    ASSERT_EQ(memory_->read({0, address, bytes}, 0, other.data(), bytes, &queued), Status::in_progress);
    memory_->stop(Status::canceled);
    EXPECT_EQ(queued.status, Status::canceled) << "it had no chunk in flight";
    EXPECT_EQ(running.calls, 0);
    EXPECT_FALSE(memory_->drained());
    EXPECT_EQ(memory_->read({0, address, bytes}, 0, other.data(), bytes, &queued), Status::canceled);
    start_agent();
    wait_for(*memory_, running);
    EXPECT_EQ(running.status, Status::canceled);
    EXPECT_TRUE(memory_->drained());
    const auto arrived = host_.contents(address, bytes);
    EXPECT_EQ(arrived[0], std::byte{1});
    EXPECT_EQ(arrived[4 * (16 << 10)], std::byte{0}) << "chunks behind the slots were never sent";
}

TEST_F(StagedTest, SleepsUntilTheAgentRings) {
    start_agent();
    const std::uint64_t address = host_.allocate(4096);
    std::byte byte{};
    for (int i = 0; i < 200; ++i) {
        Arrival arrival;
        ASSERT_EQ(memory_->read({0, address, 1}, 0, &byte, 1, &arrival), Status::in_progress);
        for (int rounds = 0; arrival.calls == 0; ++rounds) {
            ASSERT_LT(rounds, 100) << "it spins";
            if (memory_->arm() == Status::ok) {
                pollfd ready{memory_->event_fd(), POLLIN, 0};
                ASSERT_EQ(poll(&ready, 1, 10000), 1) << "no ring";
            }
            memory_->progress();
        }
    }
    ASSERT_EQ(memory_->arm(), Status::ok);
    pollfd ready{memory_->event_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 20), 0) << "nothing to do: it stays asleep";
}

TEST_F(StagedTest, AnAgentThatEndsIsNoticed) {
    const std::uint64_t address = host_.allocate(4096);
    std::byte byte{};
    Arrival arrival;
    ASSERT_EQ(memory_->read({0, address, 1}, 0, &byte, 1, &arrival), Status::in_progress);
    files_ = {};  // the client's ends
    ASSERT_EQ(memory_->arm(), Status::ok);
    pollfd ready{memory_->event_fd(), POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, 10000), 1);
    memory_->progress();
    EXPECT_EQ(arrival.status, Status::peer_lost);
    EXPECT_EQ(memory_->health(), Status::peer_lost);
    EXPECT_EQ(memory_->event_fd(), -1) << "nothing that would wake the proxy again and again";
    EXPECT_EQ(memory_->read({0, address, 1}, 0, &byte, 1, &arrival), Status::peer_lost);
}

TEST_F(StagedTest, AnOrderlyEndOfTheAgentIsNoError) {
    start_agent();
    const std::uint64_t address = host_.allocate(4096);
    std::byte byte{};
    ASSERT_EQ(read_all(*memory_, {0, address, 1}, 0, &byte, 1), Status::ok);
    host_.stop_agent();
    ASSERT_EQ(memory_->arm(), Status::ok);
    pollfd ready{memory_->event_fd(), POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, 10000), 1);
    memory_->progress();
    EXPECT_EQ(memory_->health(), Status::ok);
    EXPECT_EQ(memory_->event_fd(), -1);
}

// A client can write anything into the shared area.
class LyingClientTest : public StagedTest {
  protected:
    void SetUp() override {
        StagedTest::SetUp();
        std::string problem;
        ASSERT_EQ(StagingArea::open(files_.area.get(), area_, problem), Status::ok) << problem;
        address_ = host_.allocate(4096);
        ASSERT_EQ(memory_->read({0, address_, 4096}, 0, data_.data(), 4096, &arrival_), Status::in_progress);
    }
    void expect_end() {
        memory_->progress();
        EXPECT_EQ(memory_->health(), Status::protocol);
        EXPECT_EQ(arrival_.status, Status::protocol);
        EXPECT_EQ(arrival_.calls, 1);
        EXPECT_TRUE(memory_->drained());
        EXPECT_EQ(data_, std::vector<std::byte>(4096));
        EXPECT_EQ(memory_->read({0, address_, 4096}, 0, data_.data(), 4096, &arrival_), Status::protocol);
    }
    StagingArea area_;
    std::uint64_t address_ = 0;
    std::vector<std::byte> data_ = std::vector<std::byte>(4096);
    Arrival arrival_;
};

TEST_F(LyingClientTest, AnswersForASlotThatDoesNotExist) {
    area_.post(StagingAnswer{4, 0, 0});
    expect_end();
}

TEST_F(LyingClientTest, AnswersForASlotThatIsFree) {
    StagingRequest request;
    ASSERT_TRUE(area_.take(request));
    area_.post(StagingAnswer{static_cast<std::uint16_t>(request.slot ^ 1), 0, 0});
    expect_end();
}

TEST_F(LyingClientTest, MoreAnswersThanSlots) {
    for (int i = 0; i < 5; ++i)
        area_.post(StagingAnswer{0, 0, 0});
    expect_end();
}

TEST_F(LyingClientTest, AStatusThatIsNone) {
    StagingRequest request;
    ASSERT_TRUE(area_.take(request));
    area_.post(StagingAnswer{request.slot, 0, 12345});
    memory_->progress();
    EXPECT_EQ(arrival_.status, Status::protocol);
}

TEST_F(StagedTest, TheAgentRefusesWhatIsNoStagingArea) {
    File nonsense;
    ASSERT_EQ(make_memory_file("nonsense", 1 << 20, nonsense), Status::ok);
    EXPECT_EQ(host_.start_agent({std::move(nonsense), std::move(files_.bell)}), Status::invalid);
}

}  // namespace
}  // namespace offpath::memory::test
