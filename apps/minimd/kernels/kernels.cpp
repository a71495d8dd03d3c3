#include "minimd/kernels/kernels.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "minimd/kernels/tables.h"

namespace minimd {

namespace {

// The fastest kernels come first: those of 256 bits, whose blocks are small enough to waste few lanes. The
// others that the instruction set supports follow.
template <typename Real>
std::vector<Kernels<Real>> available() {
    std::vector<Kernels<Real>> all;
    for (const int lanes : sizeof(Real) == 8 ? std::vector{4, 8, 2} : std::vector{8, 16, 4})
        if (const auto lennard_jones = lennard_jones_kernel<Real>(lanes))
            all.push_back({lanes, lennard_jones, search_kernel<Real>(lanes)});
    return all;
}

template <typename Real>
const Kernels<Real>& find(const std::vector<Kernels<Real>>& all, int lanes) {
    std::string accepted;
    for (const Kernels<Real>& each : all) {
        if (lanes == 0 || each.lanes == lanes) return each;
        accepted += (accepted.empty() ? "" : ", ") + std::to_string(each.lanes);
    }
    throw std::invalid_argument(
        "no kernels with " + std::to_string(lanes) +
        " lanes on this processor; accepted: " + (accepted.empty() ? "none, it lacks SSE4" : accepted));
}

}  // namespace

template <>
const Kernels<double>& kernels<double>(int lanes) {
    static const std::vector<Kernels<double>> all = available<double>();
    return find(all, lanes);
}

template <>
const Kernels<float>& kernels<float>(int lanes) {
    static const std::vector<Kernels<float>> all = available<float>();
    return find(all, lanes);
}

}  // namespace minimd
