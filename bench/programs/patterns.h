// Small MPI programs, each the communication of a kind of program that offpath should not slow down.
//
// They use plain MPI from one thread and know nothing of offpath. The work is fixed by `steps` and the number
// of ranks, never by a clock, so two runs do the same. Every program checks what it received.
#pragma once

#include <string_view>
#include <vector>

#include "support/mpi_program.h"

namespace programs {

using mpi_support::World;

struct Pattern {
    std::string_view name;
    std::string_view about;
    int steps;                             // how many of them make about a second on one slow core
    bool (*run)(const World&, int steps);  // on every rank; whether this rank's results are right
};

const std::vector<Pattern>& patterns();

// Blocking calls alone: ranks wait for every transfer.
bool stencil(const World& world, int steps);
bool conjugate_gradient(const World& world, int steps);
bool ping_pong(const World& world, int steps);
bool wavefront(const World& world, int steps);

// Collectives.
bool transpose(const World& world, int steps);
bool sample_sort(const World& world, int steps);
bool broadcast_gather(const World& world, int steps);

// Much computation for each byte.
bool compute_only(const World& world, int steps);
bool tasks(const World& world, int steps);
bool particle_ring(const World& world, int steps);

// Starts, meets the others once and ends.
bool start_and_end(const World& world, int steps);

}  // namespace programs
