// The parts of the front end, such as tuning, point-to-point and windows, as the lower rooms see them. The
// lower rooms include no part. They call it through this table when the attachment begins and ends, when a
// communicator is made or freed, and while a thread waits. Members may be null.
//
// Ownership: constants; calls/parts.cpp defines the table. Threads: the calls of the attachment from the
// thread in MPI_Init or MPI_Finalize, the others from any.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "counter.h"

namespace offpath::mpi {

struct Team;

struct Part {
    // In MPI_Init, before the attachment: makes rank 0's settings those of all ranks. Collective over the
    // world.
    void (*agree_on_settings)() = nullptr;
    // In MPI_Init, once attached, in the order of the table. Collective over the world.
    void (*open)() = nullptr;
    // In MPI_Finalize: returns when no work of the part is outstanding.
    void (*finish)() = nullptr;
    // Prints the part's lines of the summary on rank 0; true if there were any. Collective over the world.
    bool (*print_summary)() = nullptr;
    // Adds settings with which the device would have served more of this run, such as
    // "OFFPATH_RMA=both for 2 windows". Collective over the world; only rank 0's are used.
    void (*add_hints)(std::vector<std::string>& hints) = nullptr;
    // In MPI_Finalize, in the reverse order of the table. Collective over the world.
    void (*close)() = nullptr;

    // A communicator has got a team of the device, whose members have these ranks in the world. Collective
    // over the communicator.
    void (*team_made)(Team& team, const std::vector<int>& members) = nullptr;
    // The program's communicator ends. Local; operations may still use the team.
    void (*communicator_ends)(Team& team) = nullptr;

    // Makes one step. A thread that waits for anything calls it again and again.
    void (*progress)() = nullptr;

    // What the part counts in this process; always the same list.
    std::span<const Counter> (*counters)() = nullptr;
};

extern const std::span<const Part> parts;

inline void progress_parts() {
    for (const Part& part : parts)
        if (part.progress != nullptr) part.progress();
}

}  // namespace offpath::mpi
