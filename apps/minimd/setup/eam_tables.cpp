#include "minimd/setup/eam_tables.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace minimd {

namespace {

// Returns the slopes at the knots, in units of the spacing. At the ends this is the difference of one step,
// next to the ends the slope of the parabola through three knots, and elsewhere a difference of the fourth
// order. LAMMPS does the same, and results are compared with LAMMPS.
std::vector<double> knot_slopes(const std::vector<double>& f) {
    const std::size_t n = f.size();
    std::vector<double> slope(n);
    slope[0] = f[1] - f[0];
    slope[1] = 0.5 * (f[2] - f[0]);
    for (std::size_t k = 2; k + 2 < n; ++k)
        slope[k] = (8.0 * (f[k + 1] - f[k - 1]) - (f[k + 2] - f[k - 2])) / 12.0;
    slope[n - 2] = 0.5 * (f[n - 1] - f[n - 3]);
    slope[n - 1] = f[n - 1] - f[n - 2];
    return slope;
}

}  // namespace

Spline::Spline(const std::vector<double>& values, double spacing) : per_spacing_(1.0 / spacing) {
    if (values.size() < 5) throw std::invalid_argument("a spline needs 5 values");
    const std::vector<double> slope = knot_slopes(values);
    rows_.assign(values.size() * row_size, 0.0);
    for (std::size_t k = 0; k < values.size(); ++k) {
        double* row = &rows_[k * row_size];
        row[6] = values[k];
        row[5] = slope[k];
        if (k + 1 < values.size()) {
            const double rise = values[k + 1] - values[k];
            row[4] = 3.0 * rise - 2.0 * slope[k] - slope[k + 1];
            row[3] = slope[k] + slope[k + 1] - 2.0 * rise;
        }
        row[2] = row[5] * per_spacing_;
        row[1] = 2.0 * row[4] * per_spacing_;
        row[0] = 3.0 * row[3] * per_spacing_;
    }
}

Spline::Point Spline::at(double argument) const {
    const double scaled = std::max(0.0, argument * per_spacing_);
    const int k = static_cast<int>(std::min(scaled, static_cast<double>(rows() - 2)));
    const double p = std::min(scaled - k, 1.0);
    const double* row = &rows_[static_cast<std::size_t>(k) * row_size];
    return {((row[3] * p + row[4]) * p + row[5]) * p + row[6], (row[0] * p + row[1]) * p + row[2]};
}

std::string element_symbol(int atomic_number) {
    constexpr std::string_view symbols =
        "H HeLiBeB C N O F NeNaMgAlSiP S ClArK CaScTiV CrMnFeCoNiCuZnGaGeAsSeBrKrRbSrY "
        "ZrNbMoTcRuRhPdAgCdInSnSbTeI Xe"
        "CsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaW ReOsIrPtAuHgTlPbBiPoAtRnFrRaAcThPaU "
        "NpPuAmCmBkCfEsFmMdNoLrRfDbSgBhHs"
        "MtDsRgCnNhFlMcLvTsOg";
    if (atomic_number < 1 || static_cast<std::size_t>(atomic_number) * 2 > symbols.size()) return "X";
    std::string symbol(symbols.substr(static_cast<std::size_t>(atomic_number - 1) * 2, 2));
    if (symbol[1] == ' ') symbol.pop_back();
    return symbol;
}

}  // namespace minimd
