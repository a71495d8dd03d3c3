#include "fft3d/fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace fft3d {

namespace {

struct Wave {
    std::array<int, 3> mode;
    Complex amplitude;
};

std::vector<Wave> waves_of(const Decomposition& decomposition, int variable) {
    const auto wrap = [&](int a, int b, int c) {
        const auto& n = decomposition.n();
        return std::array<int, 3>{a % n[0], b % n[1], c % n[2]};
    };
    return {{wrap(1 + variable, 2, 3 + 2 * variable), {1.0, 0.0}},
            {wrap(decomposition.n()[0] - 1, 5 + variable, 1), {0.0, 0.5}},
            {wrap(0, decomposition.n()[1] / 2, variable), {-0.25, 0.125}}};
}

// exp(2 pi i mode k / n) for k = 0..n-1
std::vector<Complex> wave_table(int n, int mode) {
    std::vector<Complex> table(n);
    for (int k = 0; k < n; ++k) {
        const auto phase = static_cast<std::int64_t>(mode) * k % n;
        table[k] = std::polar(1.0, 2.0 * std::numbers::pi * static_cast<double>(phase) / n);
    }
    return table;
}

double noise(std::uint64_t key) {
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>(static_cast<std::int64_t>(key ^ (key >> 31))) * 0x1p-63;
}

template <typename Visit>
void visit_noise(const Decomposition& decomposition, int variable, Visit visit) {
    const Range xs = decomposition.x(), ys = decomposition.y_of_row();
    const std::uint64_t ny = decomposition.n()[1], nz = decomposition.n()[2];
    const std::uint64_t seed = 0x9e3779b97f4a7c15ULL * (variable + 1);
    std::size_t index = 0;
    for (int x = 0; x < xs.count; ++x) {
        for (int y = 0; y < ys.count; ++y) {
            const std::uint64_t row = (static_cast<std::uint64_t>(xs.first + x) * ny + ys.first + y) * nz;
            for (std::uint64_t z = 0; z < nz; ++z, ++index)
                visit(index, Complex(noise(seed + 2 * (row + z)), noise(seed + 2 * (row + z) + 1)));
        }
    }
}

// A NaN counts as an infinite error; std::max alone would ignore it.
double worse(double error, Complex difference) {
    const double size = std::abs(difference);
    return std::isnan(size) ? INFINITY : std::max(error, size);
}

}  // namespace

void add_plane_wave(const Decomposition& decomposition, std::array<int, 3> mode, Complex amplitude,
                    Complex* field) {
    const Range xs = decomposition.x(), ys = decomposition.y_of_row();
    const auto [nx, ny, nz] = decomposition.n();
    const auto in_x = wave_table(nx, mode[0]), in_y = wave_table(ny, mode[1]), in_z = wave_table(nz, mode[2]);
    for (int x = 0; x < xs.count; ++x) {
        for (int y = 0; y < ys.count; ++y) {
            const Complex factor = amplitude * in_x[xs.first + x] * in_y[ys.first + y];
            for (int z = 0; z < nz; ++z)
                *field++ += factor * in_z[z];
        }
    }
}

double largest_difference(const Array& values, const Array& expected) {
    double error = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        error = worse(error, values.data()[i] - expected.data()[i]);
    return error;
}

void fill_plane_waves(const Decomposition& decomposition, int variable, Array& field) {
    std::fill_n(field.data(), field.size(), Complex{});
    for (const Wave& wave : waves_of(decomposition, variable))
        add_plane_wave(decomposition, wave.mode, wave.amplitude, field.data());
}

void fill_noise(const Decomposition& decomposition, int variable, Array& field) {
    visit_noise(decomposition, variable,
                [&](std::size_t index, Complex value) { field.data()[index] = value; });
}

double plane_wave_spectrum_error(const Decomposition& decomposition, int variable, const Array& spectrum) {
    const Range ys = decomposition.y_of_column(), zs = decomposition.z();
    const int nx = decomposition.n()[0];
    std::vector<Complex> expected(spectrum.size());
    double largest = 0;
    for (const Wave& wave : waves_of(decomposition, variable)) {
        const auto [kx, ky, kz] = wave.mode;
        largest = std::max(largest, std::abs(wave.amplitude) * decomposition.points());
        const int y = ky - ys.first, z = kz - zs.first;
        if (y < 0 || y >= ys.count || z < 0 || z >= zs.count) continue;
        expected[(static_cast<std::size_t>(y) * nx + kx) * zs.count + z] +=
            wave.amplitude * decomposition.points();
    }
    double error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        error = worse(error, spectrum.data()[i] - expected[i]);
    return error / largest;
}

double plane_wave_field_error(const Decomposition& decomposition, int variable, const Array& field) {
    Array expected(field.size());
    fill_plane_waves(decomposition, variable, expected);
    return largest_difference(field, expected);  // the strongest wave has amplitude one
}

double noise_field_error(const Decomposition& decomposition, int variable, const Array& field) {
    double error = 0;
    visit_noise(decomposition, variable,
                [&](std::size_t index, Complex value) { error = worse(error, field.data()[index] - value); });
    return error;
}

}  // namespace fft3d
