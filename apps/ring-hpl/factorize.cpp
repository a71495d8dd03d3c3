#include "ring-hpl/factorize.h"

#include <cblas.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>

// Functions of LAPACK, which OpenBLAS contains.
extern "C" {
void dgetrf_(const int* rows, const int* columns, double* a, const int* lda, int* pivots, int* info);
void dlaswp_(const int* columns, double* a, const int* lda, const int* first, const int* last,
             const int* pivots, const int* increment);
}

namespace ring_hpl {

namespace {

// Adds its lifetime to a counter.
class Timed {
  public:
    explicit Timed(double& counter) : counter_(counter), start_(MPI_Wtime()) {}
    ~Timed() { counter_ += MPI_Wtime() - start_; }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

  private:
    double& counter_;
    double start_;
};

}  // namespace

Factorization::Factorization(const Shape& shape, PanelBroadcast& broadcast, int chunk)
    : shape_(shape), broadcast_(broadcast), chunk_(chunk), pivots_(shape.nb) {}

Timings Factorization::run(std::vector<double>& x) {
    matrix_ = generate_local_matrix(shape_);
    right_ = generate_right_hand_side(shape_);
    times_ = {};
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    start(0);
    finish(0);
    for (int panel = 0; panel < shape_.blocks(); ++panel) {
        const int next = panel + 1;
        int first = shape_.local_columns_before(next);
        if (next < shape_.blocks()) {
            if (shape_.owner(next) == shape_.rank) {
                update(panel, first, first + shape_.width(next));
                first += shape_.width(next);
            }
            start(next);
        }
        const int end = shape_.local_columns(), step = chunk_ > 0 ? chunk_ : shape_.n;
        for (; first < end; first += step) {
            update(panel, first, std::min(end, first + step));
            if (chunk_ > 0 && next < shape_.blocks()) {
                const Timed timed(times_.bcast_s);
                broadcast_.progress(next);
            }
        }
        apply_panel(panel, right_.data(), 1);
        if (next < shape_.blocks()) finish(next);
    }
    substitute_back(x);
    times_.total_s = MPI_Wtime() - begin;
    return times_;
}

void Factorization::start(int panel) {
    {
        const Timed timed(times_.bcast_s);
        broadcast_.reclaim(panel);
    }
    if (shape_.owner(panel) == shape_.rank) factor_panel(panel);
    const Timed timed(times_.bcast_s);
    broadcast_.start(panel);
}

void Factorization::finish(int panel) {
    const Timed timed(times_.bcast_s);
    broadcast_.finish(panel);
}

void Factorization::factor_panel(int panel) {
    const Timed timed(times_.panel_s);
    const int width = shape_.width(panel), rows = shape_.rows_below(panel), n = shape_.n;
    double* columns = matrix_.data() + static_cast<std::size_t>(shape_.local_columns_before(panel)) * n +
                      shape_.first_column(panel);
    int info = 0;  // a zero pivot shows in the residual
    dgetrf_(&rows, &width, columns, &n, pivots_.data(), &info);
    double* packed = std::copy_n(pivots_.data(), width, broadcast_.buffer(panel));
    for (int column = 0; column < width; ++column)
        packed = std::copy_n(columns + static_cast<std::size_t>(column) * n, rows, packed);
}

void Factorization::update(int panel, int first_local, int end_local) {
    const Timed timed(times_.update_s);
    apply_panel(panel, matrix_.data() + static_cast<std::size_t>(first_local) * shape_.n,
                end_local - first_local);
}

// On `count` columns of n rows: swaps rows, solves with the unit lower triangle, subtracts the product.
void Factorization::apply_panel(int panel, double* columns, int count) {
    const int width = shape_.width(panel), rows = shape_.rows_below(panel), n = shape_.n;
    const double* packed = broadcast_.buffer(panel);
    const double* lower = packed + width;
    double* top = columns + shape_.first_column(panel);
    std::transform(packed, packed + width, pivots_.begin(), [](double row) { return static_cast<int>(row); });
    const int one = 1;
    dlaswp_(&count, top, &n, &one, &width, pivots_.data(), &one);
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, width, count, 1.0, lower, rows,
                top, n);
    if (rows > width)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows - width, count, width, -1.0,
                    lower + width, rows, top, n, 1.0, top + width, n);
}

// Works from the last block upward: a block's owner collects what later blocks subtract, and solves its
// triangle.
void Factorization::substitute_back(std::vector<double>& x) const {
    const int n = shape_.n;
    std::vector<double> subtracted(n), collected(shape_.nb);
    x.assign(n, 0.0);
    for (int block = shape_.blocks() - 1; block >= 0; --block) {
        const int first = shape_.first_column(block), width = shape_.width(block),
                  owner = shape_.owner(block);
        MPI_Reduce(subtracted.data() + first, collected.data(), width, MPI_DOUBLE, MPI_SUM, owner,
                   MPI_COMM_WORLD);
        if (owner != shape_.rank) continue;
        const double* columns =
            matrix_.data() + static_cast<std::size_t>(shape_.local_columns_before(block)) * n;
        for (int i = 0; i < width; ++i)
            x[first + i] = right_[first + i] - collected[i];
        cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, width, columns + first, n,
                    x.data() + first, 1);
        if (first > 0)
            cblas_dgemv(CblasColMajor, CblasNoTrans, first, width, 1.0, columns, n, x.data() + first, 1, 1.0,
                        subtracted.data(), 1);
    }
    MPI_Allreduce(MPI_IN_PLACE, x.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

}  // namespace ring_hpl
