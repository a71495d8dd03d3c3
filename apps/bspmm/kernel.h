// Get, compute, update: the loop that every rank runs until there are no more units.
//
// A rank takes a unit from the counter and gets the tiles of A and B; a tile that it holds itself, it copies.
// It multiplies them and adds the product to a sum of its own for the tile of C. When the next unit belongs
// to another tile of C, it adds the sum to C. With a lookahead, it gets the tiles of that many further units
// while it multiplies, and the number of the unit after them.
#pragma once

#include <vector>

#include "bspmm/exchange.h"
#include "bspmm/problem.h"

namespace bspmm {

// Times of one rank, in seconds of wall-clock time.
struct Phases {
    double total_s = 0;
    double claim_s = 0;        // taking units
    double get_s = 0;          // starting gets, and waiting for them
    double copy_s = 0;         // copying tiles that this rank holds
    double compute_s = 0;      // products
    double accumulate_s = 0;   // adding to C
    double finish_s = 0;       // waiting until all ranks are done
    double compute_cpu_s = 0;  // the CPU time within compute_s
    double units = 0;
    double gets = 0;
    double accumulates = 0;
    // Bytes of gets from each holder, and of accumulates to each. Additions on the same rank count for
    // neither.
    std::vector<double> got, added;
};

// The numbers of buffers and slots that the kernel needs.
int buffers_for(int lookahead);
int slots_for(int lookahead);

// Collective. Executes up to `limit` units.
Phases run_kernel(const Problem& problem, Exchange& exchange, int lookahead, std::int64_t limit);

// Adds the product of two tiles to `c`, or stores it there; row by row.
void multiply(int tile, const double* a, const double* b, bool add, double* c);

}  // namespace bspmm
