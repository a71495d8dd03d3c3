// What a departure's decision means for a collective.
#include <algorithm>

#include "departure.h"
#include "departure_state.h"

namespace offpath::mpi {
namespace {

bool can_go_on(const Vote& vote, std::uint64_t number, bool direct, bool given) {
    if (given) return vote.has_result(number) || vote.receives(number);
    return vote.allows(number) || (direct && vote.has_result(number));
}

}  // namespace

Passage Departure::passage_of(std::uint64_t number, Repair repair) const {
    const State& state = *state_;
    if (!state.reported.load(std::memory_order_seq_cst)) return Passage::device;
    if (number <= state.given_up.load(std::memory_order_acquire)) return Passage::lost;
    if (!state.is_decided())
        return state.closed.load(std::memory_order_acquire) ? Passage::lost : Passage::undecided;
    if (number > state.last_on_device.load(std::memory_order_relaxed)) return Passage::host;
    const bool given = repair.given && giver_of(number) >= 0;
    const auto goes_on = [&](const auto& one) { return can_go_on(one.second, number, repair.direct, given); };
    return std::all_of(state.votes.begin(), state.votes.end(), goes_on) ? Passage::again : Passage::lost;
}

int Departure::giver_of(std::uint64_t number) const {
    if (!state_->is_decided()) return -1;
    for (const auto& [rank, vote] : state_->votes)
        if (vote.has_result(number) && vote.keeps(number)) return rank;
    return -1;
}

bool Departure::has_result(std::uint64_t number, int world_rank) const {
    if (!state_->is_decided()) return false;
    const auto found = state_->votes.find(world_rank);
    return found != state_->votes.end() && !found->second.allows(number) && found->second.has_result(number);
}

bool Departure::all_have_started(std::uint64_t number) const {
    const auto has_started = [&](const auto& one) { return number <= one.second.started; };
    return state_->is_decided() && std::all_of(state_->votes.begin(), state_->votes.end(), has_started);
}

Departure::Refusals Departure::refusals_of(std::uint64_t number, Repair repair) const {
    const std::lock_guard lock(departures_mutex);
    Refusals refusals;
    const bool given = repair.given && giver_of(number) >= 0;
    for (const auto& [rank, vote] : state_->votes)
        if (!can_go_on(vote, number, repair.direct, given)) refusals.not_intact.push_back(rank);
    if (number <= state_->given_up.load(std::memory_order_relaxed))
        refusals.gave_up.assign(state_->have_given_up.begin(), state_->have_given_up.end());
    for (const Member& member : *state_->members)
        if (!state_->heard_from.contains(member.rank)) refusals.silent.push_back(member.rank);
    return refusals;
}

}  // namespace offpath::mpi
