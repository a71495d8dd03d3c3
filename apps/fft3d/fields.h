// Inputs with known transforms, and the checks of the results.
#pragma once

#include <array>

#include "fft3d/decomposition.h"
#include "fft3d/pencil_fft.h"

namespace fft3d {

// A sum of a few plane waves, whose spectrum has that many peaks and is zero elsewhere. Differs by variable.
void fill_plane_waves(const Decomposition& decomposition, int variable, Array& field);
// Values in [-1, 1) without structure, determined by position and variable.
void fill_noise(const Decomposition& decomposition, int variable, Array& field);

// The largest deviations on this rank, relative to the largest correct value.
double plane_wave_spectrum_error(const Decomposition& decomposition, int variable, const Array& spectrum);
double plane_wave_field_error(const Decomposition& decomposition, int variable, const Array& field);
double noise_field_error(const Decomposition& decomposition, int variable, const Array& field);

// field += amplitude * exp(2 pi i (mode . position / n))
void add_plane_wave(const Decomposition& decomposition, std::array<int, 3> mode, Complex amplitude,
                    Complex* field);
// The largest difference between two arrays of one size; NaN counts as infinite.
double largest_difference(const Array& values, const Array& expected);

}  // namespace fft3d
