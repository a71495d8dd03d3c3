// libminimd-kernels.so: the kernels that an offpath device runs for miniMD (runtime_kernels.h).
#include "minimd/offpath/runtime_kernels.h"

#include <offpath/compute.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "minimd/base/layout.h"
#include "minimd/kernels/threads.h"
#include "minimd/offpath/runtime_kept.h"

namespace {

using namespace minimd;
using namespace minimd::runtime;

// Positions and forces of a device that does not share the host's memory.
template <typename Real>
AlignedVector<Real> kept_x;
template <typename Real>
AlignedVector<Real> kept_f;

std::vector<PairRow> chosen;

// Whether there is one buffer for each place of host memory, rather than one for each thing that is sent.
bool in_place(const Buffers& buffers) {
    return buffers.count == 5;
}

// Adds the forces of the rows of `pairs` to those at `f`.
template <typename Real>
EnergyVirial add_forces(const ForceArguments& arguments, const PairRows& pairs, const Real* x, Real* f,
                        std::size_t reals) {
    static std::vector<AlignedVector<Real>> thread_f;  // for all threads but the first
    static AlignedVector<Real> rehearsed;
    const std::vector<PairRows> parts = equal_parts(pairs, static_cast<std::size_t>(arguments.threads));
    const bool both_sides = arguments.both_sides != 0;
    const auto run = [&](Real* to) {
        return add_on_threads(kernels<Real>(arguments.numbers.lanes).lennard_jones, x, to, reals, parts,
                              arguments.parameters, {arguments.energy != 0, both_sides}, thread_f);
    };
    // All repetitions but the last have no effect: they only take the time that a slower device would need.
    if (rehearsed.size() != reals) rehearsed.assign(reals, Real{0});
    for (int time = 1; time < arguments.slowness; ++time)
        run(rehearsed.data());
    const EnergyVirial sum = run(f);
    const double weight = both_sides ? 1.0 : 0.5;
    return {weight * sum.energy, weight * sum.virial};
}

// An empty result means that the buffers are not those of such a part, or that the state of the part before
// it is gone.
template <typename Real>
std::optional<EnergyVirial> run_part(const ForceArguments& arguments, const PairRows& pairs,
                                     const Buffers& buffers) {
    const Part part = arguments.part;
    const auto own = static_cast<std::size_t>(arguments.own_reals),
               all = static_cast<std::size_t>(arguments.reals);
    const std::size_t first = part == Part::boundary ? own
                              : part == Part::whole  ? static_cast<std::size_t>(arguments.first_real)
                                                     : 0;
    const std::size_t end = part == Part::boundary ? all : own, bytes = (end - first) * sizeof(Real);
    const bool brings = part != Part::last, gives = part != Part::first;
    Real *x = nullptr, *f = nullptr;
    if (in_place(buffers)) {
        if (buffers.bytes[1] != all * sizeof(Real) || buffers.bytes[2] != buffers.bytes[1])
            return std::nullopt;
        x = static_cast<Real*>(buffers.data[1]);
        f = static_cast<Real*>(buffers.data[2]);
    } else {
        if (buffers.count != std::size_t{1} + (brings ? 1 : 0) + (gives ? 1 : 0)) return std::nullopt;
        for (std::size_t b = 1; b < buffers.count; ++b)
            if (buffers.bytes[b] != bytes) return std::nullopt;
        if (begins(part)) {
            kept_x<Real>.resize(all);
            kept_f<Real>.resize(all);
        }
        if (kept_x<Real>.size() != all) return std::nullopt;
        x = kept_x<Real>.data();
        f = kept_f<Real>.data();
        if (brings && bytes > 0) std::memcpy(x + first, buffers.data[1], bytes);
    }
    if (begins(part) || part == Part::boundary) std::fill(f + first, f + end, Real{0});
    const EnergyVirial sum = add_forces(arguments, pairs, x, f, end);
    if (!in_place(buffers) && gives && bytes > 0)
        std::memcpy(buffers.data[buffers.count - 1], f + first, bytes);
    return sum;
}

bool sound(const ForceArguments& arguments, std::size_t bytes) {
    return arguments.bytes() == bytes && arguments.threads >= 1 && has_kernels(arguments.numbers) &&
           arguments.first_real >= 0 && arguments.first_real <= arguments.own_reals &&
           arguments.own_reals <= arguments.reals;
}

}  // namespace

namespace minimd::runtime {

KeptLists& kept_lists() {
    static KeptLists of_this_process;
    return of_this_process;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool has_kernels(const Numbers& numbers) {
    try {
        if (numbers.real_bytes == 4) return kernels<float>(numbers.lanes).lanes == numbers.lanes;
        return numbers.real_bytes == 8 && kernels<double>(numbers.lanes).lanes == numbers.lanes;
    } catch (const std::invalid_argument&) {
        return false;
    }
}

void deliver(const Buffers& buffers, const EnergyVirial& sum, double begin) {
    const ForceAnswer answer{sum, begin, now()};
    std::memcpy(buffers.data[0], &answer, sizeof answer);
}

}  // namespace minimd::runtime

extern "C" {

OFFPATH_API int minimd_check(const void* arguments, std::size_t argument_bytes, void* const*,
                             const std::size_t*, std::size_t) {
    Numbers numbers;
    if (argument_bytes != sizeof numbers) return OFFPATH_ERR_INVALID;
    std::memcpy(&numbers, arguments, sizeof numbers);
    return has_kernels(numbers) ? 0 : OFFPATH_ERR_UNSUPPORTED;
}

OFFPATH_API int minimd_lists(const void*, std::size_t, void* const* buffers, const std::size_t* bytes,
                             std::size_t count) {
    if (count != 2) return OFFPATH_ERR_INVALID;
    const auto* rows = static_cast<const PairRow*>(buffers[0]);
    const auto* blocks = static_cast<const std::int32_t*>(buffers[1]);
    KeptLists& kept = kept_lists();
    kept.rows.assign(rows, rows + bytes[0] / sizeof(PairRow));
    kept.blocks.assign(blocks, blocks + bytes[1] / sizeof(std::int32_t));
    return 0;
}

OFFPATH_API int minimd_forces(const void* data, std::size_t data_bytes, void* const* data_of_buffers,
                              const std::size_t* bytes, std::size_t count) {
    const double begin = now();
    const Buffers buffers{data_of_buffers, bytes, count};
    ForceArguments arguments;
    if (data_bytes > sizeof arguments || count == 0 || bytes[0] != sizeof(ForceAnswer))
        return OFFPATH_ERR_INVALID;
    std::memcpy(&arguments, data, data_bytes);
    if (!sound(arguments, data_bytes)) return OFFPATH_ERR_INVALID;
    std::span<const PairRow> rows(kept_lists().rows);
    const std::int32_t* blocks = kept_lists().blocks.data();
    if (in_place(buffers)) {
        rows = buffers.all<PairRow>(3);
        blocks = buffers.at<std::int32_t>(4);
    }
    chosen.clear();
    for (std::int32_t r = 0; r < arguments.ranges; ++r) {
        const RowRange& range = arguments.range[r];
        if (range.first < 0 || range.end < range.first || static_cast<std::size_t>(range.end) > rows.size())
            return OFFPATH_ERR_INVALID;
        chosen.insert(chosen.end(), rows.begin() + range.first, rows.begin() + range.end);
    }
    const PairRows pairs{chosen, blocks};
    const std::optional<EnergyVirial> sum = arguments.numbers.real_bytes == 4
                                                ? run_part<float>(arguments, pairs, buffers)
                                                : run_part<double>(arguments, pairs, buffers);
    if (!sum) return OFFPATH_ERR_INVALID;
    deliver(buffers, *sum, begin);
    return 0;
}
}
