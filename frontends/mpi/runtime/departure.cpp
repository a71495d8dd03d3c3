#include "departure.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "letters.h"
#include "losses.h"
#include "runtime.h"

namespace offpath::mpi {

struct Departure::State {
    static constexpr std::uint64_t all_calls = std::numeric_limits<std::uint64_t>::max();

    std::uint32_t number = 0;
    std::vector<Member> members;
    std::atomic<std::uint64_t> calls{0};
    // A call raises the count and then reads `reported`. A report sets `reported` and then reads the count.
    // So a call that another thread makes meanwhile is in the report, or is held back, or both.
    std::atomic<bool> reported{false};
    // Of all reports, and of what was given up. Does not change any more once `decided` is set.
    std::atomic<std::uint64_t> last_on_device{0};
    std::atomic<bool> decided{false};
    std::set<int> heard_from, committed;  // ranks in the world

    bool is_decided() const { return decided.load(std::memory_order_acquire); }
};

namespace {

using State = Departure::State;

// Guards the letters and the members below. No thread waits for another rank while it holds this mutex.
std::mutex departures_mutex;
std::unordered_map<std::uint32_t, std::shared_ptr<State>> states;  // by this rank's number
std::unordered_map<std::uint32_t, std::vector<Letter>> in_the_making;
std::uint32_t next_number = 0;

// What follows needs the mutex.
void tell_others(const State& state, LetterKind kind, std::uint64_t calls) {
    for (const auto& [rank, number] : state.members)
        if (rank != runtime().rank) send_letter(rank, {number, state.number, calls, kind});
}

void count_letter(State& state, int from, std::uint64_t calls, LetterKind kind) {
    if (state.committed.contains(from)) return;
    const std::uint64_t before = state.last_on_device.load(std::memory_order_relaxed);
    state.last_on_device.store(std::max(before, calls), std::memory_order_relaxed);
    state.heard_from.insert(from);
    if (kind == LetterKind::commit) state.committed.insert(from);
    // Pairs with is_decided().
    if (state.committed.size() == state.members.size()) state.decided.store(true, std::memory_order_release);
}

void commit(State& state) {
    if (state.committed.contains(runtime().rank)) return;
    const std::uint64_t calls = state.last_on_device.load(std::memory_order_relaxed);
    tell_others(state, LetterKind::commit, calls);
    count_letter(state, runtime().rank, calls, LetterKind::commit);
}

void commit_if_all_are_heard(State& state) {
    if (state.heard_from.size() == state.members.size()) commit(state);
}

void report_of(State& state) {
    if (state.reported.exchange(true, std::memory_order_seq_cst)) return;
    any_loss.store(true, std::memory_order_relaxed);
    const std::uint64_t calls = state.calls.load(std::memory_order_seq_cst);
    tell_others(state, LetterKind::report, calls);
    count_letter(state, runtime().rank, calls, LetterKind::report);
    commit_if_all_are_heard(state);
}

void answer(const Letter& letter) {
    if (const auto found = states.find(letter.communicator); found != states.end()) {
        State& state = *found->second;
        report_of(state);
        count_letter(state, letter.from, letter.calls, letter.kind);
        commit_if_all_are_heard(state);
    } else if (const auto making = in_the_making.find(letter.communicator); making != in_the_making.end()) {
        making->second.push_back(letter);
    } else if (letter.kind == LetterKind::report && letter.calls != State::all_calls) {
        // This rank's program has already freed the communicator.
        send_letter(letter.from,
                    {letter.reply_to, letter.communicator, State::all_calls, LetterKind::commit});
    }
}

}  // namespace

CommunicatorInTheMaking::CommunicatorInTheMaking()
    : number_([] {
          const std::lock_guard lock(departures_mutex);
          in_the_making[next_number];
          return next_number++;
      }()) {}

CommunicatorInTheMaking::~CommunicatorInTheMaking() {
    const std::lock_guard lock(departures_mutex);
    const auto letters = in_the_making.extract(number_);
    for (const Letter& letter : letters.mapped())
        answer(letter);
}

Departure::Departure(std::uint32_t number, std::vector<Member> members) : state_(std::make_shared<State>()) {
    state_->number = number;
    state_->members = std::move(members);
    const std::lock_guard lock(departures_mutex);
    states[number] = state_;
}

Departure::~Departure() {
    close();
}

void Departure::close() {
    const std::lock_guard lock(departures_mutex);
    if (states.erase(state_->number) != 0 && state_->reported.load(std::memory_order_relaxed) && active())
        commit(*state_);
}

void Departure::report() {
    if (state_->reported.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(departures_mutex);
    report_of(*state_);
}

bool Departure::give_up(std::uint64_t number) {
    const std::lock_guard lock(departures_mutex);
    if (state_->committed.contains(runtime().rank)) return false;
    tell_others(*state_, LetterKind::give_up, number);
    count_letter(*state_, runtime().rank, number, LetterKind::give_up);
    return true;
}

std::uint64_t Departure::next() {
    return state_->calls.fetch_add(1, std::memory_order_seq_cst) + 1;
}

Passage Departure::passage_of(std::uint64_t number) const {
    if (!state_->reported.load(std::memory_order_seq_cst)) return Passage::device;
    const bool decided = state_->is_decided();  // first: afterwards the number does not change
    if (number <= state_->last_on_device.load(std::memory_order_relaxed)) return Passage::lost;
    return decided ? Passage::host : Passage::undecided;
}

bool Departure::is_undecided() const {
    return state_->reported.load(std::memory_order_relaxed) && !state_->is_decided();
}

bool answer_letters() {
    const std::unique_lock lock(departures_mutex, std::try_to_lock);
    if (!lock.owns_lock() || !active()) return false;
    while (const std::optional<Letter> letter = next_letter())
        answer(*letter);
    return true;
}

}  // namespace offpath::mpi
