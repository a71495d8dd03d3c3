// The messages from a host to a device that is a rank of the same job. A message is a command of fixed size,
// followed by what belongs to the command.
//
//   lists    numbers: how many rows and blocks each list has, then the halo's plan; then the rows and blocks
//            of each list that has any, each as one message
//   forces   reals: positions of the rank's own slots; numbers: the first row of each list
//   follow   numbers: the migration's record
//   collect  answered by reals: forces of the own slots; and by an Answer
//   tunnel   reals: ghosts' numbers for all peers in turn; answered by reals, those from all peers
//   stop
//
// Every host of a device gives the same commands in the same order. Host and device run the same program,
// perhaps on two architectures with the same byte order and sizes of numbers.
#pragma once

#include <cstdint>

namespace minimd {

enum class Verb : std::int32_t { lists = 1, forces, follow, collect, tunnel_plan, tunnel, stop };

struct Command {
    Verb verb = Verb::stop;
    std::int32_t numbers = 0;  // how many follow
    std::int32_t slots = 0, local_slots = 0;
    std::int32_t lists = 0;  // number of lists, one for each thread of the host
    std::int32_t boundary = 0, energy = 0, reverse = 0;
    std::int32_t piece_bytes = 0;  // size of the pieces of positions, rows and blocks (pieces.h)
};

struct Answer {
    double energy = 0.0, virial = 0.0;
    double seconds = 0.0;  // in which the device computed
    double waited = 0.0;   // seconds in which the device was idle before the host asked for the forces
};

}  // namespace minimd
