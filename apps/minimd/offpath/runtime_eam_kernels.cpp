// The part of libminimd-kernels.so that computes the embedded-atom method (runtime_eam_kernels.h).
#include "minimd/offpath/runtime_eam_kernels.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "minimd/kernels/eam_loops.h"
#include "minimd/kernels/threads.h"
#include "minimd/offpath/runtime_kept.h"

namespace {

using namespace minimd;
using namespace minimd::runtime;

// What the device keeps once the table has arrived, and what one kernel of a step leaves for the next.
template <typename Real>
struct Kept {
    AlignedVector<Real> coefficients;
    EamTable<Real> table;
    std::unique_ptr<EamLoops<Real>> loops;
    std::unique_ptr<EamLoops<Real>> rehearsal;  // for computations that only take time
    AlignedVector<Real> ignored;                // results of rehearsals
    AlignedVector<Real> x, density, f;          // on a device that does not share the host's memory
    std::vector<PairRow> chosen;
    std::int32_t slots = -1;  // the slots of the step whose densities have been begun
};

template <typename Real>
Kept<Real>& kept() {
    static Kept<Real> of_this_process;
    return of_this_process;
}

bool sound(const EamArguments& arguments, std::size_t bytes) {
    const std::int32_t begin = arguments.first_slot, own = arguments.own_slots;
    const bool fine = arguments.threads >= 1 && has_kernels(arguments.numbers) && begin >= 0 &&
                      begin <= own && own <= arguments.slots && (begin == 0 || arguments.alone != 0) &&
                      arguments.interior_rows >= 0 && arguments.interior_rows <= arguments.rows;
    if (!fine || arguments.ranges < 0 || arguments.bytes() != bytes) return false;
    return std::all_of(arguments.range, arguments.range + arguments.ranges, [&](const RowRange& range) {
        return range.first >= 0 && range.first <= range.end && range.end <= arguments.interior_rows;
    });
}

template <typename Real>
bool take_table(const EamTableArguments& arguments, std::span<const std::byte> bytes) {
    const auto numbers = (static_cast<std::size_t>(arguments.last_row) + 1) * EamTable<Real>::row_size;
    if (arguments.last_row < 0 || bytes.size() != numbers * sizeof(Real)) return false;
    Kept<Real>& state = kept<Real>();
    state.coefficients.resize(numbers);
    std::memcpy(state.coefficients.data(), bytes.data(), bytes.size());
    state.table = {state.coefficients.data(), arguments.last_row, static_cast<Real>(arguments.per_spacing),
                   static_cast<Real>(arguments.cutoff)};
    return true;
}

template <typename Real>
void begin_step(Kept<Real>& state, const EamArguments& arguments) {
    const auto threads = static_cast<std::size_t>(arguments.threads);
    if (!state.loops || state.loops->threads() != threads) {
        state.loops = std::make_unique<EamLoops<Real>>(arguments.numbers.lanes, threads);
        state.rehearsal = std::make_unique<EamLoops<Real>>(arguments.numbers.lanes, threads);
    }
    state.loops->begin(arguments.slots);
    state.slots = arguments.slots;
    if (arguments.slowness > 1) {
        state.rehearsal->begin(arguments.slots);
        const auto numbers = 3 * static_cast<std::size_t>(arguments.slots);
        if (state.ignored.size() != numbers) state.ignored.assign(numbers, Real{0});
    }
}

// Here and below, an empty result means that the buffers are not those of such a kernel, or that the state of
// the kernel before it is gone.
template <typename Real>
std::optional<EnergyVirial> densities(const EamArguments& arguments, const Buffers& buffers) {
    Kept<Real>& state = kept<Real>();
    const bool boundary = arguments.boundary != 0, in_place = buffers.count == 5;
    const bool last = boundary || arguments.alone != 0;
    const auto begin = static_cast<std::size_t>(arguments.first_slot),
               own = static_cast<std::size_t>(arguments.own_slots),
               all = static_cast<std::size_t>(arguments.slots),
               given = static_cast<std::size_t>(arguments.given());
    if (state.table.rows == nullptr || (boundary && state.slots != arguments.slots)) return std::nullopt;

    std::span<const PairRow> rows(kept_lists().rows);
    const std::int32_t* blocks = kept_lists().blocks.data();
    Real *x = nullptr, *density = nullptr;
    if (in_place) {
        if (!buffers.holds<Real>(1, 3 * all) || !buffers.holds<Real>(2, all)) return std::nullopt;
        x = buffers.at<Real>(1);
        density = buffers.at<Real>(2);
        rows = buffers.all<PairRow>(3);
        blocks = buffers.at<std::int32_t>(4);
    } else {
        const std::size_t first = boundary ? own : begin, end = boundary ? all : own;
        if (buffers.count != (last ? 3u : 2u) || !buffers.holds<Real>(1, 3 * (end - first)) ||
            (last && !buffers.holds<Real>(2, given)))
            return std::nullopt;
        state.x.resize(3 * all);
        state.density.resize(all);
        x = state.x.data();
        density = state.density.data();
        if (end > first) std::memcpy(x + 3 * first, buffers.data[1], buffers.bytes[1]);
    }
    if (rows.size() != static_cast<std::size_t>(arguments.rows)) return std::nullopt;
    const auto interior = static_cast<std::size_t>(arguments.interior_rows);
    std::span<const PairRow> chosen = rows.subspan(interior);
    if (!boundary) {
        state.chosen.clear();
        for (std::int32_t r = 0; r < arguments.ranges; ++r)
            state.chosen.insert(state.chosen.end(), rows.begin() + arguments.range[r].first,
                                rows.begin() + arguments.range[r].end);
        chosen = state.chosen;
        begin_step(state, arguments);
        std::fill(density + begin, density + (last ? own : all), Real{0});
    }
    const PairRows pairs{chosen, blocks};
    const std::vector<PairRows> parts = equal_parts(pairs, state.loops->threads());
    const auto run = [&](EamLoops<Real>& loops, Real* to) {
        return loops.densities(x, parts, state.table, {arguments.energy != 0, arguments.both_sides(boundary)},
                               boundary ? 1 : 0, to);
    };
    for (int time = 1; time < arguments.slowness; ++time)
        run(*state.rehearsal, state.ignored.data());
    const double energy = run(*state.loops, density);
    if (last) {
        state.loops->gather_densities(density, arguments.first_slot, arguments.given_end());
        if (!in_place && given > 0) std::memcpy(buffers.data[2], density + begin, given * sizeof(Real));
    }
    return EnergyVirial{energy, 0.0};
}

template <typename Real>
std::optional<EnergyVirial> forces(const EamArguments& arguments, const Buffers& buffers) {
    Kept<Real>& state = kept<Real>();
    const bool in_place = buffers.count == 4;
    const auto begin = static_cast<std::size_t>(arguments.first_slot),
               all = static_cast<std::size_t>(arguments.slots),
               given = static_cast<std::size_t>(arguments.given());
    if (!state.loops || state.slots != arguments.slots) return std::nullopt;
    const Real *x = nullptr, *derivative = nullptr;
    Real* f = nullptr;
    if (in_place) {
        if (!buffers.holds<Real>(1, 3 * all) || !buffers.holds<Real>(2, all) ||
            !buffers.holds<Real>(3, 3 * all))
            return std::nullopt;
        x = buffers.at<Real>(1);
        derivative = buffers.at<Real>(2);
        f = buffers.at<Real>(3);
    } else {
        if (buffers.count != 3 || !buffers.holds<Real>(1, all) || !buffers.holds<Real>(2, 3 * given) ||
            state.x.size() != 3 * all)
            return std::nullopt;
        state.f.resize(3 * all);
        x = state.x.data();
        derivative = buffers.at<Real>(1);
        f = state.f.data();
    }
    std::fill(f + 3 * begin, f + (arguments.alone != 0 ? 3 * (begin + given) : 3 * all), Real{0});
    const auto run = [&](EamLoops<Real>& loops, Real* to) {
        double virial = 0.0;
        for (const bool boundary : {false, true})
            virial += loops.forces(x, derivative, {arguments.energy != 0, arguments.both_sides(boundary)},
                                   boundary ? 1 : 0, to);
        return virial;
    };
    for (int time = 1; time < arguments.slowness; ++time)
        run(*state.rehearsal, state.ignored.data());
    const double virial = run(*state.loops, f);
    state.loops->gather_forces(f, arguments.first_slot, arguments.given_end());
    state.slots = -1;
    if (!in_place && given > 0) std::memcpy(buffers.data[2], f + 3 * begin, 3 * given * sizeof(Real));
    return EnergyVirial{0.0, virial};
}

template <typename Call>
int compute(const void* data, std::size_t data_bytes, const Buffers& buffers, const Call& call) {
    const double begin = now();
    EamArguments arguments;
    if (data_bytes > sizeof arguments || buffers.count == 0 || buffers.bytes[0] != sizeof(ForceAnswer))
        return OFFPATH_ERR_INVALID;
    std::memcpy(&arguments, data, data_bytes);
    if (!sound(arguments, data_bytes)) return OFFPATH_ERR_INVALID;
    const std::optional<EnergyVirial> sum = call(arguments);
    if (!sum) return OFFPATH_ERR_INVALID;
    deliver(buffers, *sum, begin);
    return 0;
}

}  // namespace

extern "C" {

OFFPATH_API int minimd_eam_table(const void* data, std::size_t data_bytes, void* const* buffers,
                                 const std::size_t* bytes, std::size_t count) {
    EamTableArguments arguments;
    if (data_bytes != sizeof arguments || count != 1) return OFFPATH_ERR_INVALID;
    std::memcpy(&arguments, data, sizeof arguments);
    if (!has_kernels(arguments.numbers)) return OFFPATH_ERR_UNSUPPORTED;
    const std::span<const std::byte> rows(static_cast<const std::byte*>(buffers[0]), bytes[0]);
    const bool taken = arguments.numbers.real_bytes == 4 ? take_table<float>(arguments, rows)
                                                         : take_table<double>(arguments, rows);
    return taken ? 0 : OFFPATH_ERR_INVALID;
}

OFFPATH_API int minimd_eam_densities(const void* data, std::size_t data_bytes, void* const* data_of_buffers,
                                     const std::size_t* bytes, std::size_t count) {
    const Buffers buffers{data_of_buffers, bytes, count};
    return compute(data, data_bytes, buffers, [&](const EamArguments& arguments) {
        return arguments.numbers.real_bytes == 4 ? densities<float>(arguments, buffers)
                                                 : densities<double>(arguments, buffers);
    });
}

OFFPATH_API int minimd_eam_forces(const void* data, std::size_t data_bytes, void* const* data_of_buffers,
                                  const std::size_t* bytes, std::size_t count) {
    const Buffers buffers{data_of_buffers, bytes, count};
    return compute(data, data_bytes, buffers, [&](const EamArguments& arguments) {
        return arguments.numbers.real_bytes == 4 ? forces<float>(arguments, buffers)
                                                 : forces<double>(arguments, buffers);
    });
}
}
