#include "fft3d/pipeline.h"

#include <algorithm>

namespace fft3d {

Pipeline::Pipeline(const Decomposition& decomposition, PencilFft& fft, int in_flight,
                   mpi_support::Allocator allocator)
    : fft_(fft),
      blocking_(in_flight == 0),
      exchanges_{decomposition.z_to_y(), decomposition.y_to_x(), decomposition.y_to_x().reversed(),
                 decomposition.z_to_y().reversed()} {
    const std::size_t bytes = decomposition.largest_pencil() * sizeof(Complex);
    for (int lane = 0; lane < std::max(in_flight, 1); ++lane) {
        lanes_.emplace_back();
        lanes_.back().send = mpi_support::Buffer(bytes, allocator);
        lanes_.back().received = mpi_support::Buffer(bytes, allocator);
    }
}

int Pipeline::default_in_flight(int variables) {
    constexpr int kMost = 4;
    const int waves = (variables + kMost - 1) / kMost;
    return (variables + waves - 1) / waves;
}

Timings Pipeline::run(std::vector<Variable>& variables, const PointwiseStep* step) {
    step_ = step;
    times_ = {};
    const double start = MPI_Wtime();
    auto next = variables.begin();
    for (Lane& lane : lanes_)
        if (next != variables.end()) begin(lane, *next++);
    bool active = true;
    while (active) {
        active = false;
        for (Lane& lane : lanes_) {
            if (lane.variable == nullptr) continue;
            if (!advance(lane)) {
                lane.variable = nullptr;
                if (next != variables.end()) begin(lane, *next++);
            }
            active = active || lane.variable != nullptr;
        }
    }
    times_.total_s = MPI_Wtime() - start;
    return times_;
}

void Pipeline::begin(Lane& lane, Variable& variable) {
    lane.variable = &variable;
    lane.stage = 0;
    compute(lane);
    post(lane);
}

bool Pipeline::advance(Lane& lane) {
    if (lane.request != MPI_REQUEST_NULL) {
        const double start = MPI_Wtime();
        MPI_Wait(&lane.request, MPI_STATUS_IGNORE);
        times_.comm_s += MPI_Wtime() - start;
    }
    ++lane.stage;
    compute(lane);
    if (lane.stage == kStages - 1) return false;
    post(lane);
    return true;
}

void Pipeline::compute(Lane& lane) {
    const double start = MPI_Wtime();
    Complex* send = lane.send.as<Complex>();
    const Complex* received = lane.received.as<Complex>();
    Variable& variable = *lane.variable;
    switch (lane.stage) {
        case 0:
            fft_.forward_z(variable.field.data(), send);
            break;
        case 1:
            fft_.forward_y(received, send);
            break;
        case 2:
            fft_.forward_and_back_x(received, variable.spectrum.data(), send, step_);
            break;
        case 3:
            fft_.backward_y(received, send);
            break;
        default:
            fft_.backward_z(received, variable.field.data(), step_);
    }
    times_.compute_s += MPI_Wtime() - start;
}

void Pipeline::post(Lane& lane) {
    const Exchange& exchange = exchanges_[lane.stage];
    if (exchange.parts() == 1) {
        lane.send.swap(lane.received);
        return;
    }
    const double start = MPI_Wtime();
    Complex *send = lane.send.as<Complex>(), *received = lane.received.as<Complex>();
    if (blocking_) {
        MPI_Alltoallv(send, exchange.send_counts.data(), exchange.send_offsets.data(), MPI_C_DOUBLE_COMPLEX,
                      received, exchange.receive_counts.data(), exchange.receive_offsets.data(),
                      MPI_C_DOUBLE_COMPLEX, exchange.comm);
    } else {
        MPI_Ialltoallv(send, exchange.send_counts.data(), exchange.send_offsets.data(), MPI_C_DOUBLE_COMPLEX,
                       received, exchange.receive_counts.data(), exchange.receive_offsets.data(),
                       MPI_C_DOUBLE_COMPLEX, exchange.comm, &lane.request);
    }
    times_.comm_s += MPI_Wtime() - start;
}

}  // namespace fft3d
