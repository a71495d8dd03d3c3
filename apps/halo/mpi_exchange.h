// MpiExchange: the faces of a block travel to the neighbours by the host's MPI, blocking or not. Borrows
// everything that it is given. One thread uses it.
#pragma once

#include <mpi.h>

#include <array>

#include "halo/grid.h"
#include "halo/stencil.h"

namespace halo {

// A message's tag names the face that the sender sends.
constexpr int tag_of(int dim, int side) {
    return 2 * dim + side;
}

class MpiExchange {
  public:
    // `out` and `in` are buffers of all faces (Layout::face_begin).
    MpiExchange(const Block& block, const Layout& layout, double* out, double* in)
        : block_(block), layout_(layout), out_(out), in_(in) {}

    // Sends and receives, one dimension and side after the other.
    void blocking() const;
    // Starts all messages, and waits for them.
    void start();
    void wait();

  private:
    const Block& block_;
    const Layout& layout_;
    double *const out_, *const in_;
    std::array<MPI_Request, 12> requests_{};
    int count_ = 0;
};

}  // namespace halo
