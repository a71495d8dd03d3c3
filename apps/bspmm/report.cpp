#include "bspmm/report.h"

#include <algorithm>

#include "support/mpi_program.h"

namespace bspmm {

namespace {

constexpr double Phases::*numbers[] = {&Phases::total_s,  &Phases::claim_s,       &Phases::get_s,
                                       &Phases::copy_s,   &Phases::compute_s,     &Phases::accumulate_s,
                                       &Phases::finish_s, &Phases::compute_cpu_s, &Phases::units,
                                       &Phases::gets,     &Phases::accumulates};

}  // namespace

std::size_t flat_size(int ranks) {
    return std::size(numbers) + 2 * static_cast<std::size_t>(ranks);
}

std::vector<double> flatten(const Phases& phases) {
    std::vector<double> values;
    for (const auto member : numbers)
        values.push_back(phases.*member);
    values.insert(values.end(), phases.got.begin(), phases.got.end());
    values.insert(values.end(), phases.added.begin(), phases.added.end());
    return values;
}

Phases unflatten(const double* values, int ranks) {
    Phases phases;
    for (const auto member : numbers)
        phases.*member = *values++;
    phases.got.assign(values, values + ranks);
    phases.added.assign(values + ranks, values + 2 * ranks);
    return phases;
}

Summary summarise(const std::vector<std::vector<Phases>>& iterations) {
    Summary summary;
    for (const auto member : numbers) {
        std::vector<double> values;
        for (const std::vector<Phases>& ranks : iterations) {
            double largest = 0, sum = 0;
            for (const Phases& phases : ranks) {
                largest = std::max(largest, phases.*member);
                sum += phases.*member;
            }
            values.push_back(member == &Phases::total_s ? largest : sum / static_cast<double>(ranks.size()));
        }
        summary.phases.*member = mpi_support::median(values);
    }
    const std::vector<Phases>& last = iterations.back();
    summary.moved.assign(last.size(), std::vector<double>(last.size(), 0));
    for (std::size_t rank = 0; rank < last.size(); ++rank) {
        summary.units_of.push_back(last[rank].units);
        for (std::size_t other = 0; other < last.size(); ++other) {
            summary.moved[other][rank] += last[rank].got[other];
            summary.moved[rank][other] += last[rank].added[other];
        }
    }
    return summary;
}

}  // namespace bspmm
