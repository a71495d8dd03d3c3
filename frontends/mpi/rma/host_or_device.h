// The two ways in which a window may be served: by the device, or by a window of the host's MPI over the same
// memory and ranks. All ranks of a window use the same way; only puts and gets may leave the host's
// (epochs.h). The way changes only where all ranks meet and none has an operation that the change would
// divide:
//
//   creation         starts on the host's MPI, or on the device where ranks were seen to compute
//   MPI_Win_fence    of the window
//   MPI_Barrier and the other collectives that no rank leaves before all have entered, on the communicator of
//                    which the window was made. Only MPI_Win_lock_all may be held there, no other epoch
//
// There the ranks compare how much time they spent outside MPI (time_in_mpi.h, ways/way_choice.h), and
// whether one of them has met a lost device. The other way's window is made when it is first needed.
//
// A window whose way is fixed to the device leaves it only after a loss, and for good. A rank may leave a
// lost device before that, by itself (window_loss.h).
//
// Threads: with MPI_THREAD_MULTIPLE, another thread could be using the window while this one is in a
// collective on the communicator. There windows do not adapt, and leave a lost device in MPI_Win_fence only.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/time_in_mpi.h"
#include "windows.h"

namespace offpath::mpi {

// A team's list of the windows that were made from its communicator and may change their way, in the order of
// creation, which is the same on all ranks.
struct WindowMeetings {
    std::vector<Window*> windows;
    WayPace pace;
};

// How ways are chosen; rules other than evidence are for tests.
enum class WayRule : std::uint8_t { evidence, always_device, turns };

// Makes the window for `way` if it does not exist. Collective over the window's communicator. False: some
// rank could not. May throw NoAgreement (communicators/combined_words.h), as open_ways may.
bool make_way(Window& window, Way way);
// Makes the window's first way. False: neither could be made. Collective. `busy`: ranks were seen to compute.
// `threads`: some rank has MPI_THREAD_MULTIPLE.
bool open_ways(Window& window, WayRule rule, bool busy, bool threads);
// The window is being freed: ends its host's half, and removes it from meetings. Collective.
void close_ways(Window& window);

// In MPI_Win_fence, whose epoch begins with `opening` (MPI's assertions). Collective. Returns an error that
// the window's handler has to hear of.
int fence_either_way(Window& window, int assertion);

// In a collective on `comm`, of which the windows were made. Sets `met` if all ranks have met. An error is
// the collective's, and was reported.
int meet_for_windows(Team& team, MPI_Comm comm, bool costs_nothing, bool& met);

// How often windows led by this rank have changed their way.
std::uint64_t ways_changed();

}  // namespace offpath::mpi
