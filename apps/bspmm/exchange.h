// What the kernel needs of a communication library: access to tiles of other ranks, sums into tiles of C, and
// the counter of work units. Each variant implements this interface with its library.
//
// Ranks 0 to holders() - 1 hold tiles, and are the `holder` of a Place. Other ranks only work. One thread
// starts and finishes every operation, and does not access the operation's memory in between. An operation
// may complete before finish_* is called: a blocking library completes it when it starts it.
#pragma once

#include <cstdint>
#include <vector>

#include "bspmm/problem.h"

namespace bspmm {

class Exchange {
  public:
    virtual ~Exchange() = default;

    virtual int rank() const = 0;
    virtual int ranks() const = 0;
    virtual int holders() const = 0;

    // Collective, once. Makes room for the problem's tiles at every holder, and on every rank for `buffers`
    // tiles to work with; gets will use `slots` slots. C and the counter are 0.
    virtual void allocate(const Problem& problem, int buffers, int slots) = 0;
    // This rank's own tiles, contiguous.
    virtual double* tiles(Matrix matrix) = 0;
    virtual double* buffer(int index) = 0;

    // Claims the number of a unit that no other rank gets. A number beyond the table means that there is no
    // more work. There may be as many claims at a time as there are slots; the first one started is finished
    // first.
    virtual void start_claim() = 0;
    virtual std::int64_t finish_claim() = 0;

    // Gets a tile of A or B that another rank holds. It is finished together with the other gets of its slot.
    virtual void start_get(int slot, double* into, Matrix matrix, Place place) = 0;
    virtual void finish_gets(int slot) = 0;

    // Adds a tile to a tile of C at its holder. Concurrent additions by other ranks are not lost.
    virtual void start_accumulate(const double* from, Place place) = 0;
    // Returns when this rank may write to `from` again, after the last accumulate from it.
    virtual void finish_accumulate(const double* from) = 0;

    // Returns when the accumulates of all ranks are in C and visible to the holders. Collective.
    virtual void complete() = 0;
    // Sets C and the counter to 0 again. Called after complete(). Collective.
    virtual void restart() = 0;
    virtual void barrier() = 0;
    // Returns on rank 0 the concatenated `values` of all ranks, which must be equally many. Returns nothing
    // on other ranks. Collective.
    virtual std::vector<double> gather(const std::vector<double>& values) = 0;

    // Ends the job.
    virtual void abort(int code) = 0;
};

}  // namespace bspmm
