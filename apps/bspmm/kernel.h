// Get, compute, update: the loop that every rank runs until there are no more units.
//
// A rank takes a unit from the counter, gets the tiles of A and B (a copy where it holds them itself),
// multiplies, and adds to a tile of C of its own until the next unit is of another one; then it adds that to
// C. With a lookahead, the tiles of so many further units, and the number of the one after them, are under
// way while it multiplies.
#pragma once

#include <vector>

#include "bspmm/exchange.h"
#include "bspmm/problem.h"

namespace bspmm {

// Of one rank, in seconds by the clock on the wall.
struct Phases {
    double total_s = 0;
    double claim_s = 0;        // taking units
    double get_s = 0;          // starting gets and waiting for them
    double copy_s = 0;         // tiles that are here
    double compute_s = 0;      // products
    double accumulate_s = 0;   // adding to C
    double finish_s = 0;       // until all are done
    double compute_cpu_s = 0;  // of compute_s, the time on a core
    double units = 0;
    double gets = 0;
    double accumulates = 0;
    // Bytes that came from each holder in gets, and went to each in accumulates; what is added at home counts
    // for neither.
    std::vector<double> got, added;
};

// Buffers and slots that the kernel needs of the exchange.
int buffers_for(int lookahead);
int slots_for(int lookahead);

// Collective. Takes units up to `limit` of them.
Phases run_kernel(const Problem& problem, Exchange& exchange, int lookahead, std::int64_t limit);

// The product of two tiles, added to `c`, or in its place: row by row.
void multiply(int tile, const double* a, const double* b, bool add, double* c);

}  // namespace bspmm
