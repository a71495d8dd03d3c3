#include "fft3d/schroedinger.h"

#include <algorithm>
#include <cmath>

#include "fft3d/fields.h"

namespace fft3d {

namespace {

constexpr double kTimeStep = 0.01;
constexpr double kCoupling = 5.0;  // repulsive, hence stable

// The wave number of index k of a transform of length n.
int wave_number(int k, int n) {
    return k <= n / 2 ? k : k - n;
}

// Omits operator*'s checks for infinities.
Complex product(Complex a, Complex b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Schroedinger::Schroedinger(const Decomposition& decomposition) : decomposition_(decomposition) {
    for (int axis = 0; axis < 3; ++axis) {
        const int n = decomposition.n()[axis];
        for (int k = 0; k < n; ++k) {
            const double number = wave_number(k, n);
            phases_[axis].push_back(std::polar(1.0, -0.5 * number * number * kTimeStep));
        }
    }
}

void Schroedinger::in_spectrum(int y, Complex* modes) const {
    const Range zs = decomposition_.z();
    const Complex of_y = phases_[1][decomposition_.y_of_column().first + y];
    const Complex* of_z = phases_[2].data() + zs.first;
    for (const Complex of_x : phases_[0]) {
        const Complex of_row = product(of_x, of_y);
        for (int z = 0; z < zs.count; ++z)
            modes[z] = product(modes[z], product(of_row, of_z[z]));
        modes += zs.count;
    }
}

void Schroedinger::in_space(Complex* values, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
        const double density = values[i].real() * values[i].real() + values[i].imag() * values[i].imag();
        const double angle = -kCoupling * kTimeStep * density;
        values[i] = product(values[i], {std::cos(angle), std::sin(angle)});
    }
}

Schroedinger::Wave Schroedinger::exact_wave(int variable, int steps) const {
    Wave wave{{}, 0.5 + 0.25 / (1 + variable)};
    double energy = kCoupling * std::norm(wave.amplitude);
    const std::array<int, 3> wanted{1 + variable, 2, 3};
    for (int axis = 0; axis < 3; ++axis) {
        const int n = decomposition_.n()[axis];
        wave.mode[axis] = wanted[axis] % n;
        const double number = wave_number(wave.mode[axis], n);
        energy += 0.5 * number * number;
    }
    wave.amplitude *= std::polar(1.0, -energy * kTimeStep * steps);
    return wave;
}

void Schroedinger::fill_exact(int variable, int steps, Array& field) const {
    const Wave wave = exact_wave(variable, steps);
    std::fill_n(field.data(), field.size(), Complex{});
    add_plane_wave(decomposition_, wave.mode, wave.amplitude, field.data());
}

double Schroedinger::exact_error(int variable, int steps, const Array& field) const {
    Array expected(field.size());
    fill_exact(variable, steps, expected);
    return largest_difference(field, expected) / std::abs(exact_wave(variable, steps).amplitude);
}

}  // namespace fft3d
