// What the timed iterations compute: noise that must come back, or waves that must have moved.
#pragma once

#include <memory>
#include <string>

#include "fft3d/fields.h"
#include "fft3d/schroedinger.h"

namespace fft3d {

class Workload {
  public:
    // `problem` is transform or schroedinger.
    Workload(const std::string& problem, const Decomposition& decomposition) : decomposition_(decomposition) {
        if (problem == "schroedinger") schroedinger_ = std::make_unique<Schroedinger>(decomposition);
    }

    // The step between the transforms; null: none.
    const PointwiseStep* step() const { return schroedinger_.get(); }

    void fill(int variable, Array& field) const {
        if (schroedinger_) {
            schroedinger_->fill_exact(variable, 0, field);
        } else {
            fill_noise(decomposition_, variable, field);
        }
    }

    // The largest relative deviation on this rank after `iterations`.
    double error(int variable, int iterations, const Array& field) const {
        return schroedinger_ ? schroedinger_->exact_error(variable, iterations, field)
                             : noise_field_error(decomposition_, variable, field);
    }

  private:
    const Decomposition& decomposition_;
    std::unique_ptr<Schroedinger> schroedinger_;
};

}  // namespace fft3d
