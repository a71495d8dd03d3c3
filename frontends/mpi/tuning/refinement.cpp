#include "refinement.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::mpi {
namespace {

// The first call on an engine prepares its schedule and its connections; what it costs says nothing.
constexpr std::uint64_t calls_to_warm_up = 1;
constexpr std::uint64_t calls_tried = calls_to_warm_up + Samples::enough;
constexpr std::uint64_t calls_watched = calls_to_warm_up + Samples::enough;
// A slot that is settled looks again after so many calls, and each time after twice as many: what trials may
// cost stays a small share, and a load that came or went is noticed.
constexpr std::uint64_t first_look_again = 512;
constexpr std::uint64_t longest_look_again = 1U << 16;
// The other engine is not tried where the table expects it to cost so much more.
constexpr double hopeless = 1.25;

constexpr std::size_t at(Engine engine) {
    return static_cast<std::size_t>(engine);
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
    return {of(&Sample::exposed_ns), of(&Sample::elapsed_ns)};
}

Slot::Slot(Op op, std::uint64_t bytes, Engine usual, std::vector<TableRow> rows,
           std::uint64_t least_worth_trying)
    : op_(op),
      bytes_(bytes),
      usual_(usual),
      rows_(std::move(rows)),
      least_worth_trying_(least_worth_trying),
      look_again_after_(first_look_again) {}

Slot::Call Slot::next() {
    const bool tries = phase_ == Phase::trying && calls_ < calls_tried;
    const Engine engine = tries ? other(usual_) : usual_;
    const bool sampled = calls_ >= calls_to_warm_up && (tries || phase_ == Phase::watching);
    ++calls_;
    return {engine, sampled};
}

void Slot::add(Engine engine, const Sample& sample) {
    samples_[at(engine)].add(sample);
}

bool Slot::wants_agreement() const {
    switch (phase_) {
        case Phase::watching:
            return calls_ >= calls_watched;
        case Phase::trying:
            return calls_ >= calls_tried;
        case Phase::settled:
            return calls_ >= look_again_after_;
    }
    return false;
}

Slot::Words Slot::contribute() const {
    Words own{};
    for (const Engine engine : {Engine::host, Engine::device}) {
        const Samples& samples = samples_[at(engine)];
        if (!samples.are_enough()) continue;
        const Sample median = samples.median();
        own[3 * at(engine)] = 1;
        own[3 * at(engine) + 1] = median.exposed_ns;
        own[3 * at(engine) + 2] = median.elapsed_ns;
    }
    return own;
}

bool Slot::conclude(const Words& sums, std::uint64_t ranks) {
    if (!wants_agreement()) return false;
    const auto means = [&](Engine engine) {
        const std::uint64_t* of = &sums[3 * at(engine)];
        const double each = 1e-9 / static_cast<double>(ranks);
        return Means{of[0] == ranks, static_cast<double>(of[1]) * each, static_cast<double>(of[2]) * each};
    };
    const Means host = means(Engine::host), device = means(Engine::device);
    const Means& seen = usual_ == Engine::host ? host : device;
    switch (phase_) {
        case Phase::watching:
            // Requests that ended where nobody looks, in MPI_Finalize for instance, leave no samples.
            if (seen.known && worth_trying(seen.elapsed_s - seen.exposed_s)) {
                phase_ = Phase::trying;
                calls_ = 0;
                return false;
            }
            settle();
            return !finding_.empty();
        case Phase::trying: {
            const bool known = host.known && device.known;
            if (known) compare(host, device);
            settle();
            return known;
        }
        case Phase::settled:
            phase_ = Phase::watching;
            calls_ = 0;
            look_again_after_ = std::min(2 * look_again_after_, longest_look_again);
            for (Samples& samples : samples_)
                samples.clear();
            return false;
    }
    return false;
}

bool Slot::worth_trying(double gap_s) {
    const std::optional<TableRow> row = at_size(rows_, bytes_);
    if (!row) return usual_ == Engine::device || bytes_ >= least_worth_trying_;
    const Cost& now = usual_ == Engine::host ? row->host : row->device;
    const Cost& then = usual_ == Engine::host ? row->device : row->host;
    if (exposed(then, gap_s) <= hopeless * exposed(now, gap_s)) return true;
    finding_ = fmt::format(
        "computing {:.3g} ms meanwhile; the table expects {:.3g} ms of waiting on the {}, {:.3g} "
        "ms on the {}",
        gap_s * 1e3, exposed(now, gap_s) * 1e3, name_of(usual_), exposed(then, gap_s) * 1e3,
        name_of(other(usual_)));
    return false;
}

void Slot::compare(const Means& host, const Means& device) {
    const Means& now = usual_ == Engine::host ? host : device;
    const Means& then = usual_ == Engine::host ? device : host;
    // Waiting less is the gain; a device that takes the program's own cores or memory bandwidth would show in
    // the time that the whole took. In doubt, the host.
    const double gain = usual_ == Engine::host ? least_gain : most_loss;
    const bool better =
        then.elapsed_s < now.elapsed_s && now.exposed_s - then.exposed_s >= gain * now.elapsed_s;
    finding_ = fmt::format(
        "measured {:.3g} ms of waiting in {:.3g} ms on the host, {:.3g} in {:.3g} on the device",
        host.exposed_s * 1e3, host.elapsed_s * 1e3, device.exposed_s * 1e3, device.elapsed_s * 1e3);
    if (better) usual_ = other(usual_);
}

void Slot::settle() {
    phase_ = Phase::settled;
    calls_ = 0;
}

}  // namespace offpath::mpi
