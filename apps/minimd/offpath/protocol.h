// What a host says to the device that is a rank of the same job: a command of fixed size, then what belongs
// to it.
//
//   lists    numbers: how many rows and blocks each list has, then the halo's plan; then the rows and blocks
//            of each, as a message each where there are any
//   forces   reals: positions of the rank's own slots; numbers: the first row of each list
//   follow   numbers: the migration's record
//   collect  answered by reals: forces of the own slots; and by an Answer
//   tunnel   reals: ghosts' numbers for all peers in turn; answered by reals, those from all peers
//   stop
//
// Every host of a device gives the same commands in the same order. Host and device are one program, or the
// same program on two architectures of the same byte order and sizes of numbers.
#pragma once

#include <cstdint>

namespace minimd {

enum class Verb : std::int32_t { lists = 1, forces, follow, collect, tunnel_plan, tunnel, stop };

struct Command {
    Verb verb = Verb::stop;
    std::int32_t numbers = 0;  // that follow
    std::int32_t slots = 0, local_slots = 0;
    std::int32_t lists = 0;  // of the host's threads
    std::int32_t boundary = 0, energy = 0, reverse = 0;
    std::int32_t piece_bytes = 0;  // of positions, rows and blocks (pieces.h)
};

struct Answer {
    double energy = 0.0, virial = 0.0;
    double seconds = 0.0;  // that the share was computed
    double waited = 0.0;   // that the device had nothing to do before it was asked for the forces
};

}  // namespace minimd
