// What the kernel asks of a communication library: tiles of others, sums into tiles of C, and the counter of
// work. One implementation per variant, each with the means that its library has.
//
// Ranks 0 to holders() - 1 hold tiles and are the `holder` of a Place; further ranks only work. One thread
// starts and finishes everything, and leaves memory alone between the two. What is finished may be so before
// finish_* is called: a blocking library finishes everything as it starts it.
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

    // Collective, once: room for the problem's tiles at every holder, and at every rank for `buffers` tiles
    // to work with; gets in `slots` slots. C is 0 and so is the counter.
    virtual void allocate(const Problem& problem, int buffers, int slots) = 0;
    // This rank's own tiles, one after the other.
    virtual double* tiles(Matrix matrix) = 0;
    virtual double* buffer(int index) = 0;

    // The number of a unit that nobody else gets; numbers beyond the table mean that there is no more work.
    // As many at a time as there are slots; the one that was started first is finished first.
    virtual void start_claim() = 0;
    virtual std::int64_t finish_claim() = 0;

    // A tile of A or B that another rank holds. Finished together with those of the same slot.
    virtual void start_get(int slot, double* into, Matrix matrix, Place place) = 0;
    virtual void finish_gets(int slot) = 0;

    // Adds a tile to one of C, whoever holds it: nothing of what others add at the same time is lost.
    virtual void start_accumulate(const double* from, Place place) = 0;
    // The last one from there is finished as far as this rank is concerned: `from` may be written.
    virtual void finish_accumulate(const double* from) = 0;

    // Collective: the accumulates of all ranks are in C, and its holders see them.
    virtual void complete() = 0;
    // Collective, after complete(): C and the counter are 0 again.
    virtual void restart() = 0;
    virtual void barrier() = 0;
    // Collective: `values`, as many on every rank, one rank after the other, on rank 0; elsewhere nothing.
    virtual std::vector<double> gather(const std::vector<double>& values) = 0;

    // Ends the job.
    virtual void abort(int code) = 0;
};

}  // namespace bspmm
