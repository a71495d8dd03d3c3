// One call on a window: whether the host's MPI serves it, by which window, and what it returns.
//
//   const Served call(win);
//   if (call.by_host()) return call.ended(PMPI_Win_flush(rank, call.host()));
//   ... call.window() ...
#pragma once

#include <mpi.h>

#include "windows.h"

namespace offpath::mpi {

// No window is served here, and no time is measured. Calls that a host's MPI completes in nanoseconds ask
// this first, and then pass their arguments on as they got them.
inline bool all_by_host() {
    return windows_served.load(std::memory_order_relaxed) == 0 && outstanding.timed == 0;
}

class Served {
  public:
    explicit Served(MPI_Win win) : window_(find_window(win)), host_(win) {
        if (window_ != nullptr && window_->way == Way::host) host_ = window_->host;
    }
    bool by_host() const { return window_ == nullptr || window_->way == Way::host; }
    // The program's own window, or the host's half of a window with two ways.
    MPI_Win host() const { return host_; }
    // Null: a window of the host's MPI alone.
    Window* known() const { return window_; }
    Window& window() const { return *window_; }
    // The host's half returns its errors; the error handler is that of the program's handle.
    int ended(int result) const {
        return window_ == nullptr || result == MPI_SUCCESS ? result : raise(*window_, result);
    }

  private:
    Window* window_;
    MPI_Win host_;
};

}  // namespace offpath::mpi
