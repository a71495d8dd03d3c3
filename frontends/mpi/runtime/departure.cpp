#include "departure.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "departure_state.h"
#include "letters.h"
#include "losses.h"
#include "outstanding_counts.h"
#include "runtime.h"

namespace offpath::mpi {

std::mutex departures_mutex;

namespace {

using State = Departure::State;

// Guarded by departures_mutex.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<State>> states;  // by this rank's numbers
std::unordered_map<std::uint32_t, std::vector<Letter>> in_the_making;
std::uint32_t next_number = 0;
std::vector<std::shared_ptr<State>> undecided;  // reported by this rank
// Closed while collectives were outstanding, or after one has failed.
std::set<std::pair<std::uint32_t, std::uint32_t>> closed_early;

// What follows needs the mutex.
void tell_others(const State& state, LetterKind kind, std::uint64_t calls, const Vote& vote = {}) {
    for (const auto& [rank, number] : *state.members)
        if (rank != runtime().rank)
            send_letter(rank, {number, state.number, state.persistent, calls, kind, 0, vote});
}

void raise_to(std::atomic<std::uint64_t>& number, std::uint64_t to) {
    number.store(std::max(number.load(std::memory_order_relaxed), to), std::memory_order_release);
}

void is_no_longer_undecided(const State& state) {
    std::erase_if(undecided, [&](const auto& one) { return one.get() == &state; });
    undecided_departures.fetch_sub(1, std::memory_order_relaxed);
    outstanding.requests.lower();
}

void count_letter(State& state, int from, std::uint64_t calls, LetterKind kind, const Vote& vote = {}) {
    if (kind == LetterKind::give_up) {
        raise_to(state.given_up, calls);
        state.have_given_up.insert(from);
    }
    if (state.committed.contains(from)) return;
    raise_to(state.last_on_device, calls);
    state.heard_from.insert(from);
    if (kind != LetterKind::commit) return;
    state.committed.insert(from);
    state.votes[from] = vote;
    if (state.committed.size() < state.members->size()) return;
    state.decided.store(true, std::memory_order_release);  // pairs with is_decided()
    if (!state.closed.load(std::memory_order_relaxed)) give_results(*state.departure);
    is_no_longer_undecided(state);
}

void commit(State& state, const Vote& vote) {
    if (state.committed.contains(runtime().rank)) return;
    const std::uint64_t calls = state.last_on_device.load(std::memory_order_relaxed);
    tell_others(state, LetterKind::commit, calls, vote);
    count_letter(state, runtime().rank, calls, LetterKind::commit, vote);
}

Vote nothing_intact(const State& state) {
    return {.started = state.reported_calls};
}

void commit_if_ready(State& state) {
    if (state.heard_from.size() < state.members->size() || state.committed.contains(runtime().rank)) return;
    const std::uint64_t given_up = state.given_up.load(std::memory_order_relaxed);
    Vote vote = nothing_intact(state);
    if (given_up >= state.reported_calls ||
        find_vote(*state.departure, state.reported_calls, given_up, vote)) {
        vote.complete = vote.complete && !state.failed.load(std::memory_order_relaxed);
        commit(state, vote);
    }
}

void report_of(const std::shared_ptr<State>& shared) {
    State& state = *shared;
    if (state.reported.exchange(true, std::memory_order_seq_cst)) return;
    any_loss.store(true, std::memory_order_relaxed);
    undecided.push_back(shared);
    undecided_departures.fetch_add(1, std::memory_order_relaxed);
    outstanding.requests.raise();
    state.reported_calls = state.calls.load(std::memory_order_seq_cst);
    tell_others(state, LetterKind::report, state.reported_calls);
    count_letter(state, runtime().rank, state.reported_calls, LetterKind::report);
}

void answer(const Letter& letter) {
    if (const auto found = states.find({letter.communicator, letter.persistent}); found != states.end()) {
        report_of(found->second);
        count_letter(*found->second, letter.from, letter.calls, letter.kind, letter.vote);
        commit_if_ready(*found->second);
    } else if (const auto making = in_the_making.find(letter.communicator); making != in_the_making.end()) {
        making->second.push_back(letter);
    } else if (const auto of = states.find({letter.communicator, 0});
               of != states.end() && letter.persistent > of->second->persistent_made) {
        of->second->early.push_back(letter);
    } else if (letter.kind == LetterKind::report && letter.calls != State::all_calls) {
        // This rank's program has already freed the communicator or the persistent request.
        const bool complete = !closed_early.contains({letter.communicator, letter.persistent});
        send_letter(
            letter.from,
            {letter.reply_to, letter.communicator, letter.persistent, State::all_calls, LetterKind::commit, 0,
             Vote{.started = State::all_calls, .first = State::all_calls, .complete = complete}});
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
    state_->members = std::make_shared<const std::vector<Member>>(std::move(members));
    state_->departure = this;
    const std::lock_guard lock(departures_mutex);
    states[{number, 0}] = state_;
}

Departure::Departure(const Departure& of, std::uint32_t persistent) : state_(std::make_shared<State>()) {
    state_->number = of.state_->number;
    state_->persistent = persistent;
    state_->members = of.state_->members;
    state_->departure = this;
    const std::lock_guard lock(departures_mutex);
    states[{state_->number, persistent}] = state_;
    of.state_->persistent_made = persistent;
    std::vector<Letter> rest;
    for (const Letter& letter : std::exchange(of.state_->early, {}))
        letter.persistent == persistent ? answer(letter) : rest.push_back(letter);
    of.state_->early = std::move(rest);
}

Departure::~Departure() {
    close(false);
}

void Departure::close(bool all_ended) {
    if (state_->closed.exchange(true, std::memory_order_acq_rel)) return;
    const std::lock_guard lock(departures_mutex);
    State& state = *state_;
    if (states.erase({state.number, state.persistent}) == 0) return;
    const bool complete = all_ended && !state.failed.load(std::memory_order_relaxed);
    if (!complete) closed_early.insert({state.number, state.persistent});
    if (active())
        for (const Letter& letter : std::exchange(state.early, {}))
            answer(letter);
    if (!state.reported.load(std::memory_order_relaxed)) return;
    if (state.is_decided()) return;
    if (active())
        commit(state, {.started = state.reported_calls, .first = state.reported_calls, .complete = complete});
    if (!state.is_decided()) is_no_longer_undecided(state);
}

void Departure::report() {
    if (state_->reported.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(departures_mutex);
    if (!state_->closed.load(std::memory_order_relaxed)) report_of(state_);
}

bool Departure::has_reported() const {
    return state_->reported.load(std::memory_order_seq_cst);
}

bool Departure::is_closed() const {
    return state_->closed.load(std::memory_order_acquire);
}

bool Departure::give_up(std::uint64_t number) {
    const std::lock_guard lock(departures_mutex);
    if (state_->committed.contains(runtime().rank)) {
        const std::uint64_t last = state_->last_on_device.load(std::memory_order_relaxed);
        if (number > last) return false;
        // Others may run it again before they hear of this. The messages of a later run must not be taken for
        // those that this rank does not send now.
        number = last;
    }
    tell_others(*state_, LetterKind::give_up, number);
    count_letter(*state_, runtime().rank, number, LetterKind::give_up);
    return true;
}

std::uint64_t Departure::next() {
    return state_->calls.fetch_add(1, std::memory_order_seq_cst) + 1;
}

void Departure::has_failed() {
    state_->failed.store(true, std::memory_order_relaxed);
}

bool Departure::has_given_up() const {
    return state_->given_up.load(std::memory_order_acquire) != 0;
}

bool Departure::is_undecided() const {
    return state_->reported.load(std::memory_order_relaxed) && !state_->is_decided();
}

void commit_departures() {
    const std::unique_lock lock(departures_mutex, std::try_to_lock);
    if (!lock.owns_lock() || !active()) return;
    for (const std::shared_ptr<State>& state : std::vector(undecided))
        commit_if_ready(*state);
}

bool answer_letters() {
    const std::unique_lock lock(departures_mutex, std::try_to_lock);
    if (!lock.owns_lock() || !active()) return false;
    while (const std::optional<Letter> letter = next_letter())
        answer(*letter);
    return true;
}

}  // namespace offpath::mpi
