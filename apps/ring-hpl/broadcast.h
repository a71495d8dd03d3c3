// How a factored panel travels from its owner around the ring of ranks.
//
// Two panels exist at once, in slots panel mod 2: the one being applied and the next one, which is in flight.
// For each panel all ranks call start, progress any number of times, and finish, in this order and for panels
// in ascending order. After finish(panel), the slot's buffer holds the panel until start(panel + 2). Owns the
// buffers. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ring-hpl/matrix.h"
#include "support/buffer.h"

namespace ring_hpl {

class PanelBroadcast {
  public:
    virtual ~PanelBroadcast() = default;

    // Has room for the largest panel; the owner fills it before start.
    virtual double* buffer(int panel) = 0;
    // Returns when the slot may be written again.
    virtual void reclaim(int panel) = 0;
    virtual void start(int panel) = 0;
    // Lets the host pass the panel on, if that is the host's job.
    virtual void progress(int panel) = 0;
    virtual void finish(int panel) = 0;
};

// The size of a panel in a message: `width` pivots (rows to swap with, counted from one at the panel's first
// row), then the columns, packed.
std::size_t panel_doubles(const Shape& shape, int panel);

// HPL's increasing ring, driven by the hosts: receive from the left, and pass on to the right when a test
// finds the panel there.
std::unique_ptr<PanelBroadcast> make_ring_broadcast(const Shape& shape, mpi_support::Allocator allocator);
// MPI_Ibcast on all ranks.
std::unique_ptr<PanelBroadcast> make_ibcast_broadcast(const Shape& shape, mpi_support::Allocator allocator);
// The same ring as group primitives of offpath: each panel is recorded once, and the devices run it.
std::unique_ptr<PanelBroadcast> make_group_broadcast(const Shape& shape, std::size_t segment_bytes);

}  // namespace ring_hpl
