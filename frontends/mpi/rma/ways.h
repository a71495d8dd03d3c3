// The two ways in which a window may be served: by the device, or by a window of the host's MPI over the same
// memory and ranks. All ranks of a window take the same way; only puts and gets may leave the host's
// (epochs.h). It changes only where all of them meet and none of them has an operation that it could divide:
//
//   creation         begins with the host's MPI, or with the device where ranks were seen to compute
//   MPI_Win_fence    of the window
//   MPI_Barrier and the other collectives that let no rank go before all have come, on the communicator of
//                    which the window was made. MPI_Win_lock_all may be held there, other epochs may not
//
// There the ranks compare how much of their time they spent outside MPI (presence.h, way_choice.h), and
// whether one of them has met a lost device. The other way's window is made when it is first needed.
//
// Threads: windows change ways only where one thread at a time calls MPI; with MPI_THREAD_MULTIPLE another
// thread could be using the window meanwhile.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "presence.h"
#include "windows.h"

namespace offpath::mpi {

// What a communicator's team knows of the windows that were made of it and may change their way. In the order
// of their creation, which is the same on all ranks.
struct WindowMeetings {
    std::vector<Window*> windows;
    WayPace pace;
    std::vector<std::uint64_t> told, all;  // of a meeting, kept for the next
};

// How ways are chosen; for tests other than by evidence.
enum class WayRule : std::uint8_t { evidence, always_device, turns };

// Makes the window that serves `way`, where it is not there yet. Collective over the window's communicator.
// False: some rank could not.
bool make_way(Window& window, Way way);
// Makes its first way; false: neither of them could be made. Collective. `busy`: ranks were seen to compute.
bool open_ways(Window& window, WayRule rule, bool busy);
// The window is freed: its host's half ends, and no meeting changes it. Collective.
void close_ways(Window& window);

// In MPI_Win_fence, whose epoch begins with `opening` (MPI's assertions). Collective.
int fence_either_way(Window& window, int assertion);

// In a collective on the communicator of which the windows were made. Returns whether all ranks have met.
bool meet_for_windows(WindowMeetings& meetings, MPI_Comm comm, bool costs_nothing);

// How often windows of this rank's lead have changed their way.
std::uint64_t ways_changed();

}  // namespace offpath::mpi
