// A program's end towards a target host that says what it should not, or ends.
#include "target/program/answers.h"
#include "lines.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace offpath::target {
namespace {

struct Answering {
    Ends ends = shared_ends();
    std::vector<std::string> told;
    Answers answers{*ends.program, [this](int, const std::string& text) { told.push_back(text); }, 1000, 0,
                    true};

    template <typename Body>
    void say(std::uint64_t number, const Body& body, std::span<const std::byte> payload = {}) {
        std::vector<std::byte> record;
        append_record(record, number, 0, body, payload);
        ASSERT_EQ(ends.host->write(record), record.size());
    }
};

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Answers, AreMatchedByTheirNumbers) {
    Answering world;
    const auto first = world.answers.expect(), second = world.answers.expect();
    world.say(second, Done{0, 0, 22});
    world.say(first, Done{static_cast<std::int32_t>(Status::memory), 0, 0}, bytes_of("too large"));
    Answer answer = world.answers.wait(first);
    EXPECT_EQ(answer.status, Status::memory);
    EXPECT_EQ(answer.payload.size(), 9U);
    answer = world.answers.wait(second);
    EXPECT_EQ(answer.status, Status::ok);
    EXPECT_EQ(answer.value, 22U);
}

TEST(Answers, ComeToEveryThreadThatWaits) {
    Answering world;
    constexpr int threads = 8, rounds = 200;
    std::vector<std::thread> waiting;
    std::atomic<int> right{0};
    std::mutex saying;
    for (int i = 0; i < threads; ++i)
        waiting.emplace_back([&] {
            for (int k = 0; k < rounds; ++k) {
                const auto number = world.answers.expect();
                {
                    std::lock_guard lock(saying);
                    world.say(number, Done{0, 0, number * 3});
                }
                right += world.answers.wait(number).value == number * 3 ? 1 : 0;
            }
        });
    for (std::thread& thread : waiting)
        thread.join();
    EXPECT_EQ(right, threads * rounds);
}

TEST(Answers, ComeToEveryThreadThatNaps) {
    Answering world;
    constexpr int threads = 4;
    constexpr std::uint64_t nap_ns = 100'000'000'000;
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < threads; ++i)
        numbers.push_back(world.answers.expect());
    std::vector<std::thread> napping;
    std::atomic<int> right{0};
    for (const std::uint64_t number : numbers)
        napping.emplace_back([&, number] {
            Answer answer;
            right += world.answers.test(number, answer, nap_ns) && answer.value == number ? 1 : 0;
        });
    // The thread that reads may be any of them, and the others go on without it.
    for (const std::uint64_t number : numbers) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        world.say(number, Done{0, 0, number});
    }
    for (std::thread& thread : napping)
        thread.join();
    EXPECT_EQ(right, threads);
    Answer answer;
    const auto never = world.answers.expect();
    EXPECT_FALSE(world.answers.test(never, answer));
    EXPECT_FALSE(world.answers.test(never, answer, 1'000'000));
}

TEST(Answers, WriteOnlyWhereAGetAllowsIt) {
    Answering world;
    std::array<char, 32> memory{};
    const auto get = world.answers.expect_data(memory.data() + 8, 16);
    const auto at = [&](int offset) { return Data{reinterpret_cast<std::uint64_t>(memory.data() + offset)}; };
    world.say(get, at(8), bytes_of("abcd"));
    world.say(get, at(20), bytes_of("efgh"));
    world.say(get, at(21), bytes_of("xxxx"));     // beyond its end
    world.say(get, at(4), bytes_of("xxxx"));      // before its beginning
    world.say(get + 7, at(8), bytes_of("xxxx"));  // of no get
    const auto sync = world.answers.expect();
    world.say(sync, Done{});
    EXPECT_EQ(world.answers.wait(sync).status, Status::ok);
    EXPECT_EQ(std::string(memory.data() + 8, 4), "abcd");
    EXPECT_EQ(std::string(memory.data() + 20, 4), "efgh");
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 'x'), 0);
    world.answers.forget_data(get);
    world.say(get, at(8), bytes_of("xxxx"));  // late
    const auto last = world.answers.expect();
    world.say(last, Done{});
    EXPECT_EQ(world.answers.wait(last).status, Status::ok);
    EXPECT_EQ(memory[8], 'a');
}

TEST(Answers, TellOutputAndTheEnd) {
    Answering world;
    const auto number = world.answers.expect();
    world.say(0, Output{1}, bytes_of("hello\n"));
    world.say(0, Lost{11}, bytes_of("a_function"));
    EXPECT_EQ(world.answers.wait(number).status, Status::peer_lost);
    EXPECT_EQ(world.told, std::vector<std::string>{"hello\n"});
    EXPECT_EQ(world.answers.why(), "a_function ended with signal 11 (Segmentation fault)");
    // Later callers get the same error.
    EXPECT_EQ(world.answers.wait(world.answers.expect()).status, Status::peer_lost);
}

TEST(Answers, EndWithTheHost) {
    Answering world;
    const auto number = world.answers.expect();
    std::thread host([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        world.ends.host.reset();
    });
    EXPECT_EQ(world.answers.wait(number).status, Status::peer_lost);
    host.join();
}

TEST(Answers, GiveUpAHostThatIsSilent) {
    const Ends ends = shared_ends();
    constexpr std::uint64_t second = 1'000'000'000;
    Answers answers(
        *ends.program, [](int, const std::string&) {}, 1000, second, true);
    EXPECT_EQ(answers.wait(answers.expect()).status, Status::peer_lost);
    EXPECT_NE(answers.why().find("no sign of life from its process on the device for 1 s"), std::string::npos)
        << answers.why();
    EXPECT_TRUE(ends.host->lost() || !ends.host->readable());
}

// A process that spins on a CPU and hardly gets it, since another one spins there too. It may be stopped.
class StarvedProcess {
  public:
    StarvedProcess() {
        for (const int policy : {SCHED_OTHER, SCHED_IDLE}) {
            const pid_t made = fork();
            if (made == 0) {
                cpu_set_t all, first;
                CPU_ZERO(&first);
                (void)sched_getaffinity(0, sizeof all, &all);
                std::size_t cpu = 0;
                while (!CPU_ISSET(cpu, &all))
                    ++cpu;
                CPU_SET(cpu, &first);
                const sched_param none{};
                (void)sched_setaffinity(0, sizeof first, &first);
                (void)sched_setscheduler(0, policy, &none);
                for (;;) {
                }
            }
            (policy == SCHED_IDLE ? starved_ : busy_) = made;
        }
    }
    ~StarvedProcess() {
        for (const pid_t process : {busy_, starved_}) {
            kill(process, SIGKILL);
            waitpid(process, nullptr, 0);
        }
    }
    pid_t number() const { return starved_; }

  private:
    pid_t busy_ = 0, starved_ = 0;
};

TEST(Answers, WaitForAHostThatGetsNoCpu) {
    const Ends ends = shared_ends();
    const StarvedProcess host;
    Answers answers(
        *ends.program, [](int, const std::string&) {}, 1000, 400'000'000, true);
    std::vector<std::byte> record;
    append_record(record, 0, 0, Beat{static_cast<std::uint64_t>(host.number())});
    ASSERT_EQ(ends.host->write(record), record.size());
    const auto number = answers.expect();
    Answer answer;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    while (std::chrono::steady_clock::now() < end) {
        ASSERT_FALSE(answers.test(number, answer)) << answers.why();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(host.number(), SIGSTOP);
    EXPECT_EQ(answers.wait(number).status, Status::peer_lost);
}

// Half a record, and then nothing.
TEST(Answers, GiveUpAHostThatIsSilentWithinARecord) {
    const Ends ends = shared_ends();
    Answers answers(
        *ends.program, [](int, const std::string&) {}, 1000, 300'000'000, true);
    const auto number = answers.expect();
    Head head;
    head.kind = Kind::done;
    head.number = number;
    head.bytes = sizeof(Done);
    ASSERT_EQ(ends.host->write(bytes_of(head)), sizeof head);
    EXPECT_EQ(answers.wait(number).status, Status::peer_lost);
}

TEST(Answers, EndAtNonsense) {
    for (const Kind kind : {Kind::call, static_cast<Kind>(999)}) {
        Answering world;
        const auto number = world.answers.expect();
        Head head;
        head.kind = kind;
        head.bytes = UINT64_MAX;
        ASSERT_EQ(world.ends.host->write(bytes_of(head)), sizeof head);
        EXPECT_EQ(world.answers.wait(number).status, Status::peer_lost);
    }
    // These records are shorter or longer than their kind allows.
    for (const Kind kind : {Kind::done, Kind::data, Kind::output, Kind::lost}) {
        Answering world;
        const auto number = world.answers.expect();
        Head head;
        head.kind = kind;
        head.bytes = 3;
        ASSERT_EQ(world.ends.host->write(bytes_of(head)), sizeof head);
        EXPECT_EQ(world.answers.wait(number).status, Status::peer_lost);
    }
}

}  // namespace
}  // namespace offpath::target
