// LU factorisation with partial pivoting in the manner of HPL, with a look-ahead of one panel, and the
// solution.
//
// Panel k+1 is updated and factored first. It travels around the ring while panel k is applied to the
// trailing columns. Every rank keeps the right-hand side and applies every panel to it, so only the
// back-substitution needs further messages.
#pragma once

#include <vector>

#include "ring-hpl/broadcast.h"
#include "ring-hpl/matrix.h"

namespace ring_hpl {

struct Timings {
    double total_s = 0;   // factorisation and solution
    double panel_s = 0;   // factoring panels
    double bcast_s = 0;   // in calls that move panels
    double update_s = 0;  // applying panels
};

class Factorization {
  public:
    // `chunk` columns are updated between two calls of progress(); 0: all at once, without such calls.
    Factorization(const Shape& shape, PanelBroadcast& broadcast, int chunk);

    // Solves the generated system; x is complete on every rank. Collective.
    Timings run(std::vector<double>& x);

  private:
    void factor_panel(int panel);
    void apply_panel(int panel, double* columns, int count);
    void update(int panel, int first_local, int end_local);
    void start(int panel);
    void finish(int panel);
    void substitute_back(std::vector<double>& x) const;

    const Shape shape_;
    PanelBroadcast& broadcast_;
    const int chunk_;
    std::vector<double> matrix_, right_;
    std::vector<int> pivots_;
    Timings times_;
};

}  // namespace ring_hpl
