#include "minimd/report/summary.h"

#include <algorithm>

namespace minimd {

Spread spread_over_ranks(double value, MPI_Comm comm) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    Spread spread;
    MPI_Allreduce(&value, &spread.mean, 1, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allreduce(&value, &spread.most, 1, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Allreduce(&value, &spread.least, 1, MPI_DOUBLE, MPI_MIN, comm);
    spread.mean /= ranks;
    const double width = spread.most - spread.least;
    const auto bins = static_cast<int>(spread.histogram.size());
    const int bin =
        width > 0.0 ? std::clamp(static_cast<int>((value - spread.least) / width * bins), 0, bins - 1) : 0;
    ++spread.histogram[static_cast<std::size_t>(bin)];
    MPI_Allreduce(MPI_IN_PLACE, spread.histogram.data(), bins, MPI_INT, MPI_SUM, comm);
    return spread;
}

Summary summarise(const Results& results, MPI_Comm comm) {
    Summary summary;
    MPI_Comm_size(comm, &summary.ranks);
    summary.atoms = results.atoms;
    summary.steps = results.steps;
    summary.thermo = results.thermo;
    const auto spread = [&](auto value) { return spread_over_ranks(static_cast<double>(value), comm); };
    const Times& times = results.times;
    summary.force = spread(times.force.wall);
    summary.neighbor = spread(times.neighbor.wall);
    summary.communication = spread(times.communication.wall);
    summary.other = spread(times.other());
    summary.local_atoms = spread(results.counts.atoms);
    summary.ghosts = spread(results.counts.ghosts);
    summary.swapped = spread(results.counts.swapped);
    summary.listed_pairs = spread(results.counts.pairs);
    const double shared = spread(results.counts.shared_blocks).mean;
    summary.device_share = shared > 0.0 ? spread(results.counts.device_blocks).mean / shared : 0.0;
    const auto mean = [&](double seconds) { return spread(seconds).mean; };
    summary.shared = {mean(results.shared.starting), mean(results.shared.computing),
                      mean(results.shared.waiting), mean(results.shared.device),
                      mean(results.shared.between)};
    summary.carried = spread(results.counts.carried).mean * summary.ranks;
    summary.halo_kept = results.halo_kept;
    summary.computing = spread(times.computing()).mean;
    summary.times = {spread(times.total).most, summary.force.mean, summary.neighbor.mean,
                     summary.communication.mean};
    summary.on_core = {spread(times.cpu).mean, spread(times.force.core).mean,
                       spread(times.neighbor.core).mean, spread(times.communication.core).mean};
    return summary;
}

}  // namespace minimd
