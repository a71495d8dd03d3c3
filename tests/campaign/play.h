// Play: runs a scenario and judges it. Every call must end: with its result, checked byte by byte, or with an
// error that a fault explains. After its end nobody may write to its memory. At the end all sessions must
// close. Threads: one.
#pragma once

#include "stage.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace offpath::campaign {

struct Verdict {
    std::string fault;  // empty: everything was right
    std::string trace;  // what happened when, for people
    std::uint64_t calls = 0, ended_well = 0;
    bool right() const { return fault.empty(); }
};
Verdict play(const Scenario& scenario, Flaw flaw = {});

class Play;

// One call of a rank.
struct Call : Completion {
    Play* play = nullptr;
    int number = 0;
    std::string text;
    std::uint32_t rank = 0;
    RankSet involved = 0;  // ranks whose faults excuse an error
    Status expected = Status::ok;
    bool may_be_canceled = false;
    std::vector<const Call*> partners;   // a message's other ends; once one has failed, this need not end
    std::span<std::byte> written;        // memory that the call may write
    std::function<std::string()> check;  // after an end as expected: what is wrong, or nothing

    std::optional<Status> status;
    std::vector<std::byte> at_end;  // of `written`
    bool abandoned = false;         // its proxy died or its session ended first
    bool well() const { return status == Status::ok; }
    bool failed() const { return status && *status != Status::canceled && *status != expected; }
    // A receive from anybody may wait for those who are left.
    bool from_anybody = false;
    bool must_end() const;
};

// Something that goes on in each round, such as a call that follows from another's end.
class Actor {
  public:
    virtual ~Actor() = default;
    // Returns whether it is over.
    virtual bool act() = 0;
    virtual std::string text() const = 0;
};

// The memory that each rank exposes, and what must be in it.
struct WindowMemory {
    static constexpr std::size_t counters = 16, wide = 600, fixed = 32 << 10, own = 48 << 10;
    static constexpr std::size_t counters_at = 0, wide_at = counters * 8, fixed_at = wide_at + wide * 8;
    static std::size_t own_at(std::uint32_t origin) { return fixed_at + fixed + origin * own; }
    static std::size_t size(std::uint32_t ranks) { return own_at(ranks); }

    engine::Window* window = nullptr;
    std::vector<std::byte> bytes, at_end;
    std::vector<std::size_t> used;  // by origin, of its own part
};

class Play {
  public:
    Play(const Scenario& scenario, Flaw flaw);
    Verdict run();

    Stage& stage() { return stage_; }
    bool has(Step::Kind kind) const {
        return std::ranges::find(scenario_.steps, kind, &Step::kind) != scenario_.steps.end();
    }
    std::mt19937_64& random() { return random_; }
    // A call of a present rank.
    Call& call(std::uint32_t rank, RankSet involved, std::string text);
    // What the engine has returned for it.
    void began(Call& call, Status status);
    void ended(Call& call, Status status);
    void act(std::unique_ptr<Actor> actor) { actors_.push_back(std::move(actor)); }
    std::span<std::byte> buffer(std::size_t bytes, std::byte fill);
    const engine::Plan& plan(schedule::Schedule schedule) { return plans_.emplace_back(std::move(schedule)); }
    WindowMemory& window(std::uint32_t rank) { return windows_[rank]; }
    std::uint32_t any_rank() { return static_cast<std::uint32_t>(random_() % stage_.ranks()); }
    // Sometimes nothing, often some bytes, at times many chunks.
    std::size_t any_size();
    std::uint64_t next_number() { return ++numbers_; }  // a key, a tag
    std::uint32_t next_sequence() { return sequence_++; }
    void rounds(std::uint64_t count);
    void wrong(const std::string& what);
    // A counter of a window: at least `sure` additions were made, at most `sure + unsure`.
    struct Additions {
        std::vector<const Call*> calls;
        std::vector<std::uint64_t> fetched;
    };
    Additions& additions(std::uint32_t target, std::size_t counter) { return additions_[target][counter]; }
    // A rank asks for a lock of a target only while it has none there.
    bool take_lock(std::uint32_t origin, std::uint32_t target) {
        return locks_.emplace(origin, target).second;
    }
    void leave_lock(std::uint32_t origin, std::uint32_t target) { locks_.erase({origin, target}); }

  private:
    void take(const Step& step);
    void fault(const Step& step);
    void make_windows();
    bool over() const;
    bool settle(const std::function<bool()>& done);
    void abandon();
    void judge();
    void judge_additions();
    void end_windows();
    void end_sessions();
    void say(const std::string& what);

    const Scenario scenario_;
    Verdict verdict_;
    std::mt19937_64 random_;
    std::uint64_t numbers_ = 0;
    std::uint32_t sequence_ = 0;
    std::uint64_t last_end_us_ = 0;
    std::deque<std::vector<std::byte>> buffers_;
    std::deque<engine::Plan> plans_;
    std::deque<Call> calls_;
    std::vector<std::unique_ptr<Actor>> actors_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> locks_;
    std::vector<WindowMemory> windows_;
    std::vector<std::vector<Additions>> additions_;  // by target and counter; the last is of the wide ones
    Stage stage_;
};

// The steps of work (messages.cpp, collectives.cpp, windows.cpp).
void collective(Play& play);
void basic_messages(Play& play);
void messages_from_anybody(Play& play);
void keyed_message(Play& play);
void put(Play& play);
void get(Play& play);
void update(Play& play);
void locked_increment(Play& play);
void flush(Play& play);

// Bytes that say where they come from.
inline std::byte byte_of(std::uint64_t source, std::size_t position) {
    return static_cast<std::byte>(source * 131 + position * 7 + (position >> 8) * 13 + 1);
}
inline void fill(std::span<std::byte> bytes, std::uint64_t source) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = byte_of(source, i);
}
// Nothing, or where they differ.
std::string difference(std::span<const std::byte> got, std::span<const std::byte> wanted);
inline memory::HostRange range(std::span<const std::byte> bytes) {
    return testing::World::range(bytes.data(), bytes.size());
}

}  // namespace offpath::campaign
