#include "refinement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/time_in_mpi.h"

namespace offpath::mpi {
namespace {

constexpr std::uint64_t next_trial_after = 512;
constexpr std::uint64_t longest_between_trials = 1U << 16;
// The first call on an engine prepares its schedule and connections, so its cost is not representative. The
// second call shows whether further ones are worth it.
constexpr std::uint64_t calls_probed = 2;
constexpr std::uint64_t calls_tried = 1 + Samples::enough;
// A trial ends if a probe took this many times the usual time, beyond what a single call may take.
constexpr double hopeless_probe = 2;
// The other engine is not tried if the table expects it to cost this much more, or if the program sees so
// little of an operation that there is nothing to gain.
constexpr double hopeless = 1.25;
constexpr double least_seen = 2 * least_gain;
// The smallest share of the step, as all ranks see it, at which a program counts as computing.
constexpr double least_gap = 0.02;

constexpr std::uint64_t first_waits_needed = 16;
constexpr std::uint64_t most_waits_needed = 1U << 14;
// Agreements for this purpose alone take about a hundredth of the time. The value is the nanoseconds of a
// small allreduce for each doubling of the ranks.
constexpr std::uint64_t cost_of_a_step = 20'000;
constexpr std::uint64_t most_between = 8;  // calls
// What an earlier run found is tried again soon if the program waits so many times as long as it did then.
// That takes this part of the calls before a first trial.
constexpr double stale = 1.25;
constexpr std::uint64_t soon = 8;
// A phase of waiting that no agreement confirms ends.
constexpr std::uint64_t most_unconfirmed = 16;

constexpr std::size_t index_of(Engine engine) {
    return static_cast<std::size_t>(engine);
}

constexpr std::size_t word_computed = 0, word_waited = 1, first_cost_word = 2;

const char* words_of(Phase phase) {
    return phase == Phase::computes ? "the program computes meanwhile" : "the program only waits";
}

}  // namespace

void Samples::add(const Sample& sample) {
    if (count_ == capacity) {
        std::move(latest_.begin() + 1, latest_.end(), latest_.begin());
        --count_;
    }
    latest_[count_++] = sample;
}

Sample Samples::median() const {
    if (count_ == 0) return {};
    const auto of = [&](std::uint64_t Sample::*field) {
        std::array<std::uint64_t, capacity> values{};
        for (std::size_t i = 0; i < count_; ++i)
            values[i] = latest_[i].*field;
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(count_ / 2);
        std::nth_element(values.begin(), middle, values.begin() + static_cast<std::ptrdiff_t>(count_));
        return *middle;
    };
    return {of(&Sample::exposed_ns), of(&Sample::elapsed_ns), of(&Sample::outside_ns)};
}

Slot::Slot(Op op, std::uint64_t bytes, Engine usual, std::vector<TableRow> rows,
           std::uint64_t least_worth_trying, std::uint64_t first_trial_after, const Remembered* remembered)
    : op_(op),
      bytes_(bytes),
      rows_(std::move(rows)),
      least_worth_trying_(least_worth_trying),
      first_trial_after_(first_trial_after),
      waits_needed_(first_waits_needed) {
    for (State& state : states_) {
        state.usual = usual;
        state.try_after = first_trial_after;
    }
    if (remembered == nullptr) return;
    remembered_ = has_learned_ = true;
    phase_ = remembered->phase;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        states_[i].usual = remembered->engines[i];
        states_[i].try_after = std::max(first_trial_after, next_trial_after);
    }
    for (std::size_t i = 0; i < remembered->seen.size(); ++i) {
        const Remembered::Seen& seen = remembered->seen[i];
        state().agreed[i] = {seen.elapsed_s > 0, seen.exposed_s, seen.elapsed_s};
    }
    if (state().agreed[index_of(state().usual)].known)
        expected_exposed_s_ = state().agreed[index_of(state().usual)].exposed_s;
}

std::optional<Remembered> Slot::learned() const {
    if (!has_learned_) return std::nullopt;
    Remembered now;
    now.phase = phase_;
    for (std::size_t i = 0; i < states_.size(); ++i)
        now.engines[i] = states_[i].usual;
    for (std::size_t i = 0; i < now.seen.size(); ++i)
        if (state().agreed[i].known) now.seen[i] = {state().agreed[i].exposed_s, state().agreed[i].elapsed_s};
    return now;
}

bool Slot::is_at_risk() const {
    return phase_ == Phase::waits &&
           state().usual != states_[static_cast<std::size_t>(Phase::computes)].usual;
}

void Slot::enter(Phase phase) {
    phase_ = phase;
    has_learned_ = true;
    expected_exposed_s_.reset();  // it was of the other phase
    waited_for_ = 0;
    unconfirmed_ = 0;
    if (phase == Phase::computes) waits_needed_ = std::min(2 * waits_needed_, most_waits_needed);
    // A trial that is in progress when the phase changes has seen both phases.
    if (state().step != Step::watching) end_trial();
}

void Slot::go_on(Step step) {
    state().step = step;
    state().calls = 0;
}

void Slot::forget_costs() {
    if (state().step != Step::watching) go_on(Step::watching);
    for (Samples& each : state().samples)
        each.clear();
}

void Slot::end_trial() {
    has_learned_ = true;
    std::uint64_t& after = state().try_after;
    after = after < next_trial_after ? next_trial_after : std::min(2 * after, longest_between_trials);
    go_on(Step::watching);
}

Slot::Call Slot::next() {
    Call call;
    if (is_at_risk() && unconfirmed_ >= most_unconfirmed) {
        enter(Phase::computes);
        call.returned = true;
    }
    State& now = state();
    const bool tries = (now.step == Step::probing && now.calls < calls_probed) ||
                       (now.step == Step::trying && now.calls < calls_tried);
    call.engine = tries ? other(now.usual) : now.usual;
    call.phase = phase_;
    call.counts = now.calls > 0;
    ++now.calls;
    ++calls_;
    ++since_agreement_;
    ++unconfirmed_;
    return call;
}

void Slot::add(const Call& call, const Sample& sample) {
    const bool computed = has_computed(sample.outside_ns, sample.elapsed_ns);
    ++seen_;
    if (computed) ++seen_computing_;
    // The call with which a program begins to compute is not representative of waiting.
    if (!call.counts || (computed && call.phase == Phase::waits)) return;
    states_[static_cast<std::size_t>(call.phase)].samples[index_of(call.engine)].add(sample);
}

bool Slot::awaits_agreement(std::uint64_t in_flight, std::uint64_t delay) const {
    const State& now = state();
    switch (now.step) {
        case Step::watching:
            return now.calls + delay >= now.try_after;
        case Step::probing:
            return now.calls > calls_probed + in_flight;
        case Step::trying:
            return now.calls > calls_tried + in_flight;
    }
    return false;
}

Slot::Words Slot::contribute() {
    calls_contributed_ = state().calls;
    Words own{};
    own[word_computed] = seen_computing_ > 0 ? 1 : 0;
    own[word_waited] = seen_ > 0 && seen_computing_ == 0 ? 1 : 0;
    for (const Engine engine : {Engine::host, Engine::device}) {
        const Samples& latest = samples(engine);
        const bool probe = state().step == Step::probing && engine != state().usual;
        if (latest.count() < (probe ? 1 : Samples::enough)) continue;
        const Sample median = latest.median();
        std::uint64_t* words_of_engine = &own[first_cost_word + 3 * index_of(engine)];
        words_of_engine[0] = 1;
        words_of_engine[1] = median.exposed_ns;
        words_of_engine[2] = median.elapsed_ns;
    }
    return own;
}

bool Slot::conclude(const Words& sums, std::uint64_t ranks, std::uint64_t elapsed_ns) {
    const std::uint64_t cost_of_agreement =
        cost_of_a_step * static_cast<std::uint64_t>(std::bit_width(ranks - 1));
    const std::uint64_t each_ns = std::max<std::uint64_t>(elapsed_ns / since_agreement_, 1);
    confirmed_every_ = std::clamp<std::uint64_t>(cost_of_agreement * 100 / each_ns, 1, most_between);
    if (conclude_phase(sums[word_computed], sums[word_waited], ranks)) return true;
    const auto means = [&](Engine engine) {
        const std::uint64_t* of = &sums[first_cost_word + 3 * index_of(engine)];
        const double each = 1e-9 / static_cast<double>(ranks);
        return Means{of[0] == ranks, static_cast<double>(of[1]) * each, static_cast<double>(of[2]) * each};
    };
    for (const Engine engine : {Engine::host, Engine::device})
        if (const Means now = means(engine); now.known) state().agreed[index_of(engine)] = now;
    return conclude_trial(means(state().usual), means(other(state().usual)));
}

bool Slot::conclude_phase(std::uint64_t computed, std::uint64_t waited, std::uint64_t ranks) {
    const std::uint64_t calls = since_agreement_;
    since_agreement_ = 0;
    seen_ = seen_computing_ = 0;
    if (phase_ == Phase::waits) {
        if (computed == 0) {
            // Ranks that saw no call end contribute nothing to `waited`.
            if (waited == ranks) unconfirmed_ = 0;
            return false;
        }
        const bool changes = is_at_risk();
        enter(Phase::computes);
        if (changes) finding_ = fmt::format("{} again", words_of(phase_));
        return changes;
    }
    if (computed > 0) {
        waited_for_ = 0;
        return false;
    }
    // No rank has seen a call end.
    if (waited == 0) return false;
    // The costs of calls that were only waited for are not representative of this phase.
    forget_costs();
    if (waited < ranks) return false;
    waited_for_ += calls;
    if (waited_for_ < waits_needed_) return false;
    enter(Phase::waits);
    if (is_at_risk())
        finding_ = fmt::format("{}, and it was found out what is better then", words_of(phase_));
    return is_at_risk();
}

bool Slot::conclude_trial(const Means& usual, const Means& tried) {
    const State& now = state();
    switch (now.step) {
        case Step::watching:
            compare_with_memory(usual);
            notice_longer_computing(usual);
            if (now.calls < now.try_after || !usual.known) return false;
            if (!worth_trying(usual)) {
                end_trial();
                return !finding_.empty();
            }
            samples(other(now.usual)).clear();
            go_on(Step::probing);
            return false;
        // The calls of the trial are over, and one more has ended.
        case Step::probing:
            if (calls_contributed_ <= calls_probed) return false;
            if (!tried.known || !usual.known) {
                end_trial();
                return false;
            }
            if (tried.elapsed_s > (hides_all(usual) ? 1 : hopeless_probe) * usual.elapsed_s) {
                finding_ =
                    fmt::format("{}; a call took {:.3g} ms on the {}, {:.3g} ms is usual", words_of(phase_),
                                tried.elapsed_s * 1e3, name_of(other(now.usual)), usual.elapsed_s * 1e3);
                end_trial();
                return true;
            }
            samples(other(now.usual)).clear();
            go_on(Step::trying);
            return false;
        case Step::trying: {
            if (calls_contributed_ <= calls_tried) return false;
            const bool found = tried.known && usual.known && compare(usual, tried);
            end_trial();
            return found;
        }
    }
    return false;
}

// The program waits for so little of the step that less waiting is no gain.
bool Slot::hides_all(const Means& usual) {
    return usual.exposed_s < least_seen * usual.elapsed_s;
}

bool Slot::worth_trying(const Means& usual) {
    finding_.clear();
    const Engine now = state().usual;
    // A device that hides everything may still take cores from the program, which only a trial shows.
    if (hides_all(usual)) return now == Engine::device && phase_ == Phase::computes;
    const std::optional<TableRow> row = at_size(rows_, bytes_);
    if (!row) return now == Engine::device || bytes_ >= least_worth_trying_;
    const double gap_s = phase_ == Phase::waits ? 0 : usual.gap_s();
    const double here = exposed(now == Engine::host ? row->host : row->device, gap_s);
    const double there = exposed(now == Engine::host ? row->device : row->host, gap_s);
    if (there <= hopeless * here) return true;
    finding_ = fmt::format("{}; the table expects {:.3g} ms of waiting on the {}, {:.3g} ms on the {}",
                           words_of(phase_), here * 1e3, name_of(now), there * 1e3, name_of(other(now)));
    return false;
}

void Slot::compare_with_memory(const Means& usual) {
    if (!usual.known || !expected_exposed_s_) return;
    const double more_s = usual.exposed_s - *expected_exposed_s_;
    if (usual.exposed_s > stale * *expected_exposed_s_ && more_s > least_gain * usual.elapsed_s)
        state().try_after = std::min(state().try_after, state().calls + first_trial_after_ / soon);
    expected_exposed_s_.reset();
}

// A device can hide more of what the program computes now, so it is tried again soon.
void Slot::notice_longer_computing(const Means& usual) {
    State& now = state();
    if (!usual.known || !now.gap_without_device_s || usual.gap_s() < 2 * *now.gap_without_device_s) return;
    now.gap_without_device_s.reset();
    now.try_after = std::min(now.try_after, now.calls + first_trial_after_ / soon);
}

// The gain is less waiting. If a device takes cores or memory bandwidth from the program, that shows in the
// total time.
bool Slot::is_worth_leaving_for(const Means& usual, const Means& tried) const {
    if (tried.elapsed_s >= usual.elapsed_s) return false;
    // A device that makes the steps longer is left, however little of that is waiting.
    if (state().usual == Engine::device && tried.elapsed_s < (1 - least_gain) * usual.elapsed_s) return true;
    if (usual.exposed_s - tried.exposed_s < least_gain * usual.elapsed_s) return false;
    if (phase_ == Phase::waits) return true;
    // Both must have computed about the same time, and some time.
    const double gap = usual.gap_s(), gap_tried = tried.gap_s();
    if (gap < least_gap * usual.elapsed_s || gap > 2 * gap_tried || gap_tried > 2 * gap) return false;
    if (state().usual == Engine::host) return true;
    // A program may compute for longer later, while the host may not be able to hide more. So the possible
    // loss must be smaller than the present gain, or small.
    return tried.exposed_s <= std::max(usual.exposed_s / 2, least_seen * tried.elapsed_s);
}

bool Slot::compare(const Means& usual, const Means& tried) {
    State& now = state();
    finding_ =
        fmt::format("{}; measured {:.3g} ms of waiting in {:.3g} ms on the {}, {:.3g} in {:.3g} on the {}",
                    words_of(phase_), usual.exposed_s * 1e3, usual.elapsed_s * 1e3, name_of(now.usual),
                    tried.exposed_s * 1e3, tried.elapsed_s * 1e3, name_of(other(now.usual)));
    if (is_worth_leaving_for(usual, tried)) {
        now.usual = other(now.usual);
        now.gap_without_device_s.reset();
        if (now.usual == Engine::host && phase_ == Phase::computes) now.gap_without_device_s = tried.gap_s();
    }
    unconfirmed_ = 0;
    return true;
}

}  // namespace offpath::mpi
