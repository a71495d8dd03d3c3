#include "minimd/roofline/peaks.h"

#include "minimd/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "minimd/roofline/peaks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "minimd/base/layout.h"
#include "minimd/kernels/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

using Clock = std::chrono::steady_clock;

// Returns the rate of the fastest of several trials. Each trial is at least as long as clocks and schedulers
// require. call() returns the amount of work that it did.
template <class Call>
double best_rate(Call&& call) {
    double best = 0.0;
    for (int trial = 0; trial < 20; ++trial) {
        double work = 0.0, seconds = 0.0;
        const Clock::time_point start = Clock::now();
        do {
            work += call();
            seconds = std::chrono::duration<double>(Clock::now() - start).count();
        } while (seconds < 0.01);
        best = std::max(best, work / seconds);
    }
    return best;
}

template <typename Real, int N>
double flops() {
    const hn::FixedTag<Real, N> d;
    using V = hn::Vec<decltype(d)>;
    volatile Real source = Real(0.999999);
    const V factor = hn::Set(d, Real(source)), term = hn::Set(d, Real(1) - Real(source));
    volatile Real result = 0;
    return best_rate([&]() HWY_ATTR {
        V a = term, b = hn::Add(a, a), c = hn::Add(b, a), e = hn::Add(c, a), g = hn::Add(e, a),
          h = hn::Add(g, a), i = hn::Add(h, a), j = hn::Add(i, a), k = hn::Add(j, a), l = hn::Add(k, a);
        constexpr int rounds = 10000;
        for (int round = 0; round < rounds; ++round) {
            a = hn::MulAdd(a, factor, term);
            b = hn::MulAdd(b, factor, term);
            c = hn::MulAdd(c, factor, term);
            e = hn::MulAdd(e, factor, term);
            g = hn::MulAdd(g, factor, term);
            h = hn::MulAdd(h, factor, term);
            i = hn::MulAdd(i, factor, term);
            j = hn::MulAdd(j, factor, term);
            k = hn::MulAdd(k, factor, term);
            l = hn::MulAdd(l, factor, term);
        }
        const V sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                              hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(k, l)));
        result = result + hn::GetLane(hn::SumOfLanes(d, sum));
        return 10.0 * 2.0 * N * rounds;
    });
}

template <typename Real, int N>
double bytes(std::size_t size) {
    const hn::FixedTag<Real, N> d;
    const std::size_t count = std::max<std::size_t>(size / (2 * sizeof(Real)) / (4 * N), 1) * 4 * N;
    AlignedVector<Real> x(count), y(count);
    std::fill(x.begin(), x.end(), Real(1));
    std::fill(y.begin(), y.end(), Real(1));
    const auto factor = hn::Set(d, Real(1e-9));
    return best_rate([&]() HWY_ATTR {
        const Real* HWY_RESTRICT from = x.data();
        Real* HWY_RESTRICT to = y.data();
        const std::size_t times = std::max<std::size_t>(1, (std::size_t{1} << 16) / count);
        for (std::size_t time = 0; time < times; ++time)
            for (std::size_t at = 0; at < count; at += 4 * N)
                for (std::size_t part = 0; part < 4; ++part) {
                    Real* const here = to + at + part * N;
                    hn::Store(hn::MulAdd(factor, hn::Load(d, from + at + part * N), hn::Load(d, here)), d,
                              here);
                }
        return static_cast<double>(3 * sizeof(Real) * count * times);
    });
}

template <typename Real>
double flops_for(int lanes) {
    const auto run = for_lanes<Real, double (*)()>(lanes, [](auto n) { return &flops<Real, n()>; });
    return run != nullptr ? run() : 0.0;
}
template <typename Real>
double bytes_for(int lanes, std::size_t size) {
    const auto run =
        for_lanes<Real, double (*)(std::size_t)>(lanes, [](auto n) { return &bytes<Real, n()>; });
    return run != nullptr ? run(size) : 0.0;
}
#else
template <typename Real>
double flops_for(int) {
    return 0.0;
}
template <typename Real>
double bytes_for(int, std::size_t) {
    return 0.0;
}
#endif

double flops_double(int lanes) {
    return flops_for<double>(lanes);
}
double flops_float(int lanes) {
    return flops_for<float>(lanes);
}
double bytes_double(int lanes, std::size_t size) {
    return bytes_for<double>(lanes, size);
}
double bytes_float(int lanes, std::size_t size) {
    return bytes_for<float>(lanes, size);
}

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace minimd {

HWY_EXPORT(flops_double);
HWY_EXPORT(flops_float);
HWY_EXPORT(bytes_double);
HWY_EXPORT(bytes_float);

template <>
double peak_flops<double>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(flops_double)(lanes);
}
template <>
double peak_flops<float>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(flops_float)(lanes);
}
template <>
double peak_bytes<double>(int lanes, std::size_t bytes) {
    return HWY_DYNAMIC_DISPATCH(bytes_double)(lanes, bytes);
}
template <>
double peak_bytes<float>(int lanes, std::size_t bytes) {
    return HWY_DYNAMIC_DISPATCH(bytes_float)(lanes, bytes);
}

}  // namespace minimd
#endif
