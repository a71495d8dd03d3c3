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
    static constexpr std::uint64_t not_decided = std::numeric_limits<std::uint64_t>::max();
    static constexpr std::uint64_t all_calls = not_decided - 1;

    std::uint32_t number = 0;
    std::vector<Member> members;
    std::atomic<std::uint64_t> calls{0};
    // A call raises the count and then reads `reported`. A report sets `reported` and then reads the count.
    // So a call that another thread makes meanwhile is in the report, or is held back, or both.
    std::atomic<bool> reported{false};
    std::atomic<std::uint64_t> last_on_device{not_decided};
    std::set<int> heard_from;
    std::uint64_t most = 0;

    bool is_decided() const { return last_on_device.load(std::memory_order_acquire) != not_decided; }
};

namespace {

using State = Departure::State;

// Guards the letters and the members below. No thread waits for another rank while it holds this mutex.
std::mutex departures_mutex;
std::unordered_map<std::uint32_t, std::shared_ptr<State>> states;  // by this rank's number
std::unordered_map<std::uint32_t, std::vector<Letter>> in_the_making;
std::uint32_t next_number = 0;

void count_report(State& state, int from, std::uint64_t calls) {
    if (!state.heard_from.insert(from).second) return;
    state.most = std::max(state.most, calls);
    if (state.heard_from.size() == state.members.size())
        state.last_on_device.store(state.most, std::memory_order_release);
}

// Needs the mutex.
void report_of(State& state) {
    if (state.reported.exchange(true, std::memory_order_seq_cst)) return;
    any_loss.store(true, std::memory_order_relaxed);
    const std::uint64_t calls = state.calls.load(std::memory_order_seq_cst);
    for (const auto& [rank, number] : state.members)
        if (rank != runtime().rank) send_letter(rank, {number, state.number, calls});
    count_report(state, runtime().rank, calls);
}

void answer(const Letter& letter) {
    if (const auto found = states.find(letter.communicator); found != states.end()) {
        report_of(*found->second);
        count_report(*found->second, letter.from, letter.calls);
    } else if (const auto making = in_the_making.find(letter.communicator); making != in_the_making.end()) {
        making->second.push_back(letter);
    } else if (letter.calls != State::all_calls) {
        // This rank's program has already freed the communicator.
        send_letter(letter.from, {letter.reply_to, letter.communicator, State::all_calls});
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
    states.erase(state_->number);
}

void Departure::report() {
    if (state_->reported.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(departures_mutex);
    report_of(*state_);
}

std::uint64_t Departure::next() {
    return state_->calls.fetch_add(1, std::memory_order_seq_cst) + 1;
}

Passage Departure::passage_of(std::uint64_t number) const {
    if (!state_->reported.load(std::memory_order_seq_cst)) return Passage::device;
    const std::uint64_t last = state_->last_on_device.load(std::memory_order_acquire);
    if (last == State::not_decided) return Passage::undecided;
    return number <= last ? Passage::lost : Passage::host;
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
