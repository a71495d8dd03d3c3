#include "minimd/kernels/eam_loops.h"

#include <algorithm>

namespace minimd {

namespace {

// The number of rows at a time. The number of pairs that rows yield is not known beforehand, so there is room
// for all.
constexpr std::size_t rows_at_once = 64;

template <typename Vector>
void make_room(Vector& vector, std::size_t needed) {
    if (vector.size() < needed) vector.resize(std::max(needed, vector.size() * 3 / 2));
}

template <typename Call>
double sum_over_threads(std::size_t threads, Call&& call) {
    if (threads == 1) return call(std::size_t{0});
    std::vector<double> sums(threads);
#pragma omp parallel for schedule(static, 1) num_threads(static_cast<int>(threads))
    for (std::size_t part = 0; part < threads; ++part)
        sums[part] = call(part);
    double sum = 0.0;
    for (const double each : sums)
        sum += each;
    return sum;
}

}  // namespace

template <typename Real>
EamPairs<Real>& EamPairStore<Real>::room_for(const PairRows& rows, int lanes) {
    std::size_t blocks = 0;
    for (const PairRow& row : rows.rows)
        blocks += static_cast<std::size_t>(row.end - row.begin);
    constexpr std::size_t spare = 64;
    make_room(rows_, pairs_.row_count + 2 * rows.rows.size() + blocks / 32 + spare);
    make_room(blocks_, pairs_.block_count + blocks + spare);
    const std::size_t pairs = pairs_.pair_count + blocks * cluster_size * static_cast<std::size_t>(lanes);
    make_room(by_density_, pairs + spare);
    make_room(by_distance_, pairs + spare);
    pairs_.rows = rows_.data();
    pairs_.blocks = blocks_.data();
    pairs_.by_density = by_density_.data();
    pairs_.by_distance = by_distance_.data();
    return pairs_;
}

template <typename Real>
EamLoops<Real>::EamLoops(int lanes, std::size_t threads)
    : kernels_(eam_kernels<Real>(lanes)), lanes_(lanes), threads_(threads) {}

template <typename Real>
void EamLoops<Real>::begin(std::int32_t slots) {
    const auto count = static_cast<std::size_t>(slots);
    for (std::size_t t = 0; t < threads_.size(); ++t) {
        if (t > 0) {
            threads_[t].density.assign(count, Real{0});
            threads_[t].f.assign(3 * count, Real{0});
        }
        for (EamPairStore<Real>& pairs : threads_[t].pairs)
            pairs.clear();
    }
}

template <typename Real>
double EamLoops<Real>::densities(const Real* x, std::span<const PairRows> parts, const EamTable<Real>& table,
                                 ForceFlags flags, std::size_t portion, Real* density) {
    const double sum = sum_over_threads(threads_.size(), [&](std::size_t t) {
        Thread& thread = threads_[t];
        EamPairStore<Real>& pairs = thread.pairs[portion];
        pairs.clear();
        const PairRows& all = parts[t];
        double energies = 0.0;
        for (std::size_t at = 0; at < all.rows.size(); at += rows_at_once) {
            const PairRows rows{all.rows.subspan(at, std::min(rows_at_once, all.rows.size() - at)),
                                all.blocks};
            energies += kernels_.density(x, t == 0 ? density : thread.density.data(), rows, table, flags,
                                         pairs.room_for(rows, lanes_));
        }
        return energies;
    });
    return flags.both_sides ? sum : 0.5 * sum;
}

template <typename Real>
void EamLoops<Real>::gather_densities(Real* density, std::int32_t first, std::int32_t end) const {
    for (std::size_t t = 1; t < threads_.size(); ++t)
        for (auto s = static_cast<std::size_t>(first); s < static_cast<std::size_t>(end); ++s)
            density[s] += threads_[t].density[s];
}

template <typename Real>
double EamLoops<Real>::forces(const Real* x, const Real* derivative, ForceFlags flags, std::size_t portion,
                              Real* f) {
    const double sum = sum_over_threads(threads_.size(), [&](std::size_t t) {
        Thread& thread = threads_[t];
        return kernels_.force(x, derivative, t == 0 ? f : thread.f.data(), thread.pairs[portion].pairs(),
                              flags);
    });
    return flags.both_sides ? sum : 0.5 * sum;
}

template <typename Real>
void EamLoops<Real>::gather_forces(Real* f, std::int32_t first, std::int32_t end) const {
    for (std::size_t t = 1; t < threads_.size(); ++t)
        for (auto i = 3 * static_cast<std::size_t>(first); i < 3 * static_cast<std::size_t>(end); ++i)
            f[i] += threads_[t].f[i];
}

template class EamPairStore<float>;
template class EamPairStore<double>;
template class EamLoops<float>;
template class EamLoops<double>;

}  // namespace minimd
