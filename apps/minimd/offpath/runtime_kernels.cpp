// libminimd-kernels.so: what an offpath device runs for miniMD (runtime_kernels.h).
#include "minimd/offpath/runtime_kernels.h"

#include <offpath/compute.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "minimd/cells/layout.h"
#include "minimd/kernels/threads.h"

namespace {

using namespace minimd;
using namespace minimd::runtime;

std::vector<PairRow> kept_rows;
AlignedVector<std::int32_t> kept_blocks;
std::vector<PairRow> chosen;

template <typename Real>
EnergyVirial compute(const ForceArguments& arguments, const PairRows& pairs, const Real* x, Real* f,
                     std::size_t reals) {
    static std::vector<AlignedVector<Real>> thread_f;  // of all threads but the first
    std::fill(f, f + reals, Real{0});
    const std::vector<PairRows> parts = equal_parts(pairs, static_cast<std::size_t>(arguments.threads));
    return add_on_threads(kernels<Real>(arguments.numbers.lanes).lennard_jones, x, f, reals, parts,
                          arguments.parameters, {arguments.energy != 0, arguments.both_sides != 0}, thread_f);
}

bool has_kernels(const Numbers& numbers) {
    try {
        if (numbers.real_bytes == 4) return kernels<float>(numbers.lanes).lanes == numbers.lanes;
        return numbers.real_bytes == 8 && kernels<double>(numbers.lanes).lanes == numbers.lanes;
    } catch (const std::invalid_argument&) {
        return false;
    }
}

}  // namespace

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
    kept_rows.assign(rows, rows + bytes[0] / sizeof(PairRow));
    kept_blocks.assign(blocks, blocks + bytes[1] / sizeof(std::int32_t));
    return 0;
}

OFFPATH_API int minimd_forces(const void* data, std::size_t data_bytes, void* const* buffers,
                              const std::size_t* bytes, std::size_t count) {
    const auto start = std::chrono::steady_clock::now();
    ForceArguments arguments;
    if (data_bytes > sizeof arguments || (count != 3 && count != 5) || bytes[0] != bytes[1] ||
        bytes[2] != sizeof(ForceAnswer))
        return OFFPATH_ERR_INVALID;
    std::memcpy(&arguments, data, data_bytes);
    if (arguments.bytes() != data_bytes || arguments.threads < 1 || !has_kernels(arguments.numbers))
        return OFFPATH_ERR_INVALID;
    std::span<const PairRow> rows(kept_rows);
    const std::int32_t* blocks = kept_blocks.data();
    if (count == 5) {
        rows = {static_cast<const PairRow*>(buffers[3]), bytes[3] / sizeof(PairRow)};
        blocks = static_cast<const std::int32_t*>(buffers[4]);
    }
    chosen.clear();
    for (std::int32_t r = 0; r < arguments.ranges; ++r) {
        const RowRange& range = arguments.range[r];
        if (range.first < 0 || range.end < range.first || static_cast<std::size_t>(range.end) > rows.size())
            return OFFPATH_ERR_INVALID;
        chosen.insert(chosen.end(), rows.begin() + range.first, rows.begin() + range.end);
    }
    const PairRows pairs{chosen, blocks};
    ForceAnswer answer;
    // All but the last time is for nothing, and takes the time that a slower device would.
    for (int time = 0; time < std::max(1, arguments.slowness); ++time) {
        answer.sum = arguments.numbers.real_bytes == 4
                         ? compute(arguments, pairs, static_cast<const float*>(buffers[0]),
                                   static_cast<float*>(buffers[1]), bytes[0] / sizeof(float))
                         : compute(arguments, pairs, static_cast<const double*>(buffers[0]),
                                   static_cast<double*>(buffers[1]), bytes[0] / sizeof(double));
    }
    answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::memcpy(buffers[2], &answer, sizeof answer);
    return 0;
}
}
