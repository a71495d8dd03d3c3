#include "sim/programs/measure.h"

#include <algorithm>
#include <span>
#include <utility>

namespace offpath::sim {
namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// What all ranks share while they measure.
struct Phases {
    explicit Phases(const MeasureSpec& its_spec) : spec(its_spec) {}
    const MeasureSpec& spec;
    Time begins = 0;                     // the phase that runs, if there is a pause before it
    Time longest = 0, longest_post = 0;  // of the phase that runs, over the ranks
    Time compute = 0;                    // each rank's work
    double slowdown = 1;                 // by ranks that share its core
    std::vector<double> pure, computed, total, post;

    void note(Time length) { longest = std::max(longest, length); }
    void end(std::vector<double>& phase) {
        phase.push_back(seconds_of(longest));
        longest = 0;
    }
};

// How each phase goes.
struct PhaseKind {
    bool communicates = true, computes = true;
};

Program run_phases(Rank& rank, Step& step, const MeasureSpec& spec, Phases& phases) {
    constexpr PhaseKind kinds[] = {{true, false}, {false, true}, {true, true}};
    std::uniform_real_distribution<double> skew(0, spec.skew_s);
    std::normal_distribution<double> noise(1, spec.noise);
    std::uniform_int_distribution<Time> notice(0, rank.job().cluster().platform().turn_s > 0 ? us : 0);
    // The first repetition makes connections and fills caches.
    for (std::uint32_t iteration = 0; iteration <= spec.iterations; ++iteration) {
        for (const PhaseKind kind : std::span(kinds).first(spec.only_alone ? 1 : std::size(kinds))) {
            co_await rank.meet();
            // All agree on an instant. Where ranks take turns, any of them is the first to notice it.
            if (spec.pause_s > 0)
                co_await rank.pause(std::max(phases.begins + notice(rank.random()), rank.now()) - rank.now());
            Time begin = spec.pause_s > 0 ? phases.begins : rank.now();
            if (spec.skew_s > 0) {
                co_await rank.pause(from_seconds(skew(rank.random())));
                begin = rank.now();
            }
            std::vector<Request*> requests;
            if (kind.communicates) {
                for (const Operation& operation : step.operations())
                    requests.push_back(&co_await rank.post(operation));
                phases.longest_post = std::max(phases.longest_post, rank.now() - begin);
            }
            if (kind.computes) {
                const double factor = spec.noise > 0 ? std::max(0.0, noise(rank.random())) : 1;
                co_await rank.compute(static_cast<Time>(static_cast<double>(phases.compute) * factor));
            }
            for (Request* request : requests) {
                co_await rank.wait(*request);
                rank.give_back(*request);
            }
            phases.note(rank.now() - begin);
        }
    }
    co_await rank.meet();
}

}  // namespace

Measured measure(Job& job, const MeasureSpec& spec) {
    std::vector<std::unique_ptr<Step>> steps;
    for (std::uint32_t rank = 0; rank < job.size(); ++rank)
        steps.push_back(make_step(spec.pattern, job, rank, spec.bytes));
    Phases phases(spec);
    std::uint64_t meetings = 0;
    std::mt19937_64 moments(job.cluster().shape().seed);
    job.when_met = [&] {
        // Whoever runs then is at any moment of its turn.
        const double turn = job.cluster().platform().turn_s;
        std::uniform_real_distribution<double> more(0, turn);
        phases.begins =
            job.cluster().queue().now() + from_seconds(spec.pause_s + (turn > 0 ? more(moments) : 0));
        const std::uint64_t ended = meetings++;  // phases that have ended so far
        if (ended == 0) return;
        std::vector<double>* const kinds[] = {&phases.pure, &phases.computed, &phases.total};
        if (spec.only_alone) {
            phases.end(phases.pure);
            phases.post.push_back(seconds_of(std::exchange(phases.longest_post, 0)));
            return;
        }
        phases.end(*kinds[(ended - 1) % 3]);
        if (ended % 3 == 1) {
            phases.post.push_back(seconds_of(phases.longest_post));
            const double work = spec.compute_s < 0 ? phases.pure.back() / phases.slowdown : spec.compute_s;
            phases.compute = from_seconds(work);
        } else if (ended % 3 == 2 && phases.compute > 0) {
            phases.slowdown = phases.computed.back() / seconds_of(phases.compute);
        }
        phases.longest_post = 0;
    };
    job.run([&](Rank& rank) { return run_phases(rank, *steps[rank.number()], spec, phases); });
    job.when_met = nullptr;

    Measured measured;
    for (auto* phase : {&phases.pure, &phases.computed, &phases.total, &phases.post})
        if (!phase->empty()) phase->erase(phase->begin());
    measured.pure_s = median(phases.pure);
    measured.post_s = median(phases.post);
    if (job.cluster().moves_data())
        measured.right =
            std::all_of(steps.begin(), steps.end(), [](const auto& step) { return step->right(); });
    if (spec.only_alone) return measured;
    measured.compute_s = median(phases.computed);
    measured.total_s = median(phases.total);
    const double exposed = measured.total_s - measured.compute_s;
    if (measured.pure_s > 0)
        measured.overlap_percent = std::clamp(100 * (1 - exposed / measured.pure_s), 0.0, 100.0);
    return measured;
}

}  // namespace offpath::sim
