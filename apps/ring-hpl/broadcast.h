// How a factored panel travels from its owner around the ring of ranks.
//
// Two panels are alive at once, in slots panel mod 2: the one being applied and the next one under way. For
// each panel all ranks call start, any number of progress, finish, in this order and for panels in ascending
// order. After finish(panel) the slot's buffer holds the panel, until start(panel + 2). Owns the buffers. One
// thread.
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

    // Room for the largest panel; the owner fills it before start.
    virtual double* buffer(int panel) = 0;
    // The slot may be written again.
    virtual void reclaim(int panel) = 0;
    virtual void start(int panel) = 0;
    // Lets the host move the panel on, where that is the host's job.
    virtual void progress(int panel) = 0;
    virtual void finish(int panel) = 0;
};

// A panel as it travels: `width` pivots (rows to swap with, counted from one at the panel's first row), then
// the columns, packed.
std::size_t panel_doubles(const Shape& shape, int panel);

// HPL's increasing ring, driven by the hosts: receive from the left, pass on to the right when a test finds
// it there.
std::unique_ptr<PanelBroadcast> make_ring_broadcast(const Shape& shape, mpi_support::Allocator allocator);
// MPI_Ibcast on all ranks.
std::unique_ptr<PanelBroadcast> make_ibcast_broadcast(const Shape& shape, mpi_support::Allocator allocator);
// The same ring as group primitives of offpath: recorded once per panel, run by the devices.
std::unique_ptr<PanelBroadcast> make_group_broadcast(const Shape& shape, std::size_t segment_bytes);

}  // namespace ring_hpl
