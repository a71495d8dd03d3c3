// Runs forward and inverse transforms of several variables. Each exchange overlaps with stages of other
// variables.
//
// A variable passes five stages with four exchanges between them. `in_flight` lanes carry one variable each
// and are served in turn: wait for the lane's exchange, run its next stage, post its next exchange. A lane
// that has finished its variable begins the next one in the same turn. So while a stage runs, the exchanges
// of all other lanes are in flight. The order of exchanges on each communicator depends only on the options
// and is the same on all ranks. One thread. Lanes own their buffers.
#pragma once

#include <array>
#include <vector>

#include "fft3d/pencil_fft.h"
#include "support/buffer.h"

namespace fft3d {

struct Variable {
    Array field;     // z pencil, transformed forward and back in place
    Array spectrum;  // x pencil, the forward transform
};

struct Timings {
    double total_s = 0;    // of one iteration
    double comm_s = 0;     // inside MPI calls: posting and waiting
    double compute_s = 0;  // transforms, packing and unpacking
};

class Pipeline {
  public:
    // in_flight 0: the blocking form, MPI_Alltoallv, one variable after the other.
    Pipeline(const Decomposition& decomposition, PencilFft& fft, int in_flight,
             mpi_support::Allocator allocator);

    // The number of lanes that keeps all lanes busy to the end, at most four.
    static int default_in_flight(int variables);

    // Collective. Applies `step`, if it is not null, to every variable. Returns this rank's times.
    Timings run(std::vector<Variable>& variables, const PointwiseStep* step);

  private:
    static constexpr int kStages = 5;

    struct Lane {
        Variable* variable = nullptr;
        int stage = 0;
        MPI_Request request = MPI_REQUEST_NULL;
        mpi_support::Buffer send, received;
    };

    void begin(Lane& lane, Variable& variable);
    bool advance(Lane& lane);  // false: the variable is finished
    void compute(Lane& lane);
    void post(Lane& lane);

    PencilFft& fft_;
    const PointwiseStep* step_ = nullptr;
    bool blocking_;
    std::array<Exchange, kStages - 1> exchanges_;
    std::vector<Lane> lanes_;
    Timings times_;
};

}  // namespace fft3d
