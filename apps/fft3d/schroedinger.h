// Split-step Fourier propagation of wave functions, one per variable, by the nonlinear Schroedinger equation
//     i du/dt = -1/2 laplace u + g |u|^2 u     on the periodic cube of side 2 pi.
//
// One forward and inverse transform is one time step: a phase by wave number in the spectrum, then a phase by
// density in space. Both are exact for a plane wave, A exp(i(kx - wt)) with w = |k|^2 / 2 + g |A|^2, so the
// result is known after any number of steps. Immutable after construction.
#pragma once

#include <array>
#include <vector>

#include "fft3d/pencil_fft.h"

namespace fft3d {

class Schroedinger final : public PointwiseStep {
  public:
    explicit Schroedinger(const Decomposition& decomposition);

    void in_spectrum(int y, Complex* modes) const override;
    void in_space(Complex* values, std::size_t count) const override;

    // The state of `variable` after `steps` time steps, starting from its own plane wave.
    void fill_exact(int variable, int steps, Array& field) const;
    // The largest deviation from that state on this rank, relative to the amplitude.
    double exact_error(int variable, int steps, const Array& field) const;

  private:
    struct Wave {
        std::array<int, 3> mode;
        Complex amplitude;
    };
    Wave exact_wave(int variable, int steps) const;

    const Decomposition& decomposition_;
    std::array<std::vector<Complex>, 3> phases_;  // of one step, by axis and wave number
};

}  // namespace fft3d
