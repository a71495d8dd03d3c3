// The local work of the transform: the five stages between the exchanges.
//
// Each stage works plane by plane: a plane that was unpacked is still in cache when it is transformed and
// packed again. z is transformed along contiguous rows, and y and x across rows of z. So no stage transposes,
// and packing only copies whole rows. Workspace rows are padded, because power-of-two strides would use only
// a few cache sets. One thread calls the stages; the caller owns the buffers.
#pragma once

#include <fftw3.h>

#include <complex>
#include <memory>
#include <type_traits>
#include <vector>

#include "fft3d/decomposition.h"

namespace fft3d {

using Complex = std::complex<double>;

struct FftwFree {
    void operator()(void* memory) const { fftw_free(memory); }
};
struct PlanDestroy {
    void operator()(fftw_plan plan) const { fftw_destroy_plan(plan); }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftw_plan>, PlanDestroy>;

// A zeroed array with the alignment that vectorised transforms need.
class Array {
  public:
    explicit Array(std::size_t size);
    Complex* data() const { return memory_.get(); }
    std::size_t size() const { return size_; }

  private:
    std::size_t size_;
    std::unique_ptr<Complex, FftwFree> memory_;
};

// What a program computes between the transforms, plane by plane while a plane is in cache.
class PointwiseStep {
  public:
    virtual ~PointwiseStep() = default;
    // Gets the plane [all x][z in Zq] of the spectrum; `y` counts from this rank's first.
    virtual void in_spectrum(int y, Complex* modes) const = 0;
    // Gets values of the field, in any order.
    virtual void in_space(Complex* values, std::size_t count) const = 0;
};

class PencilFft {
  public:
    // `planner` is one of FFTW's planning flags.
    PencilFft(const Decomposition& decomposition, unsigned planner);

    void forward_z(const Complex* field, Complex* send);     // then exchange A
    void forward_y(const Complex* received, Complex* send);  // then exchange B
    // Completes the forward transform into `spectrum` and begins the inverse one; then exchange B reversed.
    void forward_and_back_x(const Complex* received, Complex* spectrum, Complex* send,
                            const PointwiseStep* step);
    void backward_y(const Complex* received, Complex* send);  // then exchange A reversed
    // Normalises by the number of points.
    void backward_z(const Complex* received, Complex* field, const PointwiseStep* step);

  private:
    void copy_y_plane(const Exchange& exchange, int x, Complex* buffer, bool to_plane);

    const Decomposition& decomposition_;
    int row_stride_;  // of the planes of y and x, in complex numbers
    Array plane_;
    Plan z_forward_, z_backward_, y_forward_, y_backward_, x_forward_, x_backward_;
};

}  // namespace fft3d
