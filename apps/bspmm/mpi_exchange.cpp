// MPI one-sided: windows from MPI_Win_allocate under one lock_all, as in the public mini-app. Without
// lookahead, a flush follows every call; otherwise gets and accumulates have requests.
#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "bspmm/variants.h"

namespace bspmm {

namespace {

class MpiExchange final : public Exchange {
  public:
    MpiExchange() {
        MPI_Init(nullptr, nullptr);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    }
    MpiExchange(const MpiExchange&) = delete;
    MpiExchange& operator=(const MpiExchange&) = delete;
    ~MpiExchange() override {
        if (tiles_win_ != MPI_WIN_NULL) {
            MPI_Win_unlock_all(tiles_win_);
            MPI_Win_unlock_all(counter_win_);
            MPI_Win_free(&counter_win_);
            MPI_Win_free(&tiles_win_);
            MPI_Free_mem(buffers_);
        }
        MPI_Finalize();
    }

    int rank() const override { return rank_; }
    int ranks() const override { return ranks_; }
    int holders() const override { return ranks_; }

    void allocate(const Problem& problem, int buffers, int slots) override;
    double* tiles(Matrix matrix) override { return tiles_ + first(matrix); }
    double* buffer(int index) override { return buffers_ + static_cast<std::size_t>(index) * tile_; }

    void start_claim() override {}
    std::int64_t finish_claim() override {
        const std::int64_t one = 1;
        std::int64_t before = 0;
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, counter_win_);
        MPI_Win_flush(0, counter_win_);
        return before;
    }

    void start_get(int slot, double* into, Matrix matrix, Place place) override {
        const auto at = static_cast<MPI_Aint>(first(matrix) + place.index * tile_);
        if (gets_.size() == 1) {
            MPI_Get(into, count(), MPI_DOUBLE, place.holder, at, count(), MPI_DOUBLE, tiles_win_);
            MPI_Win_flush(place.holder, tiles_win_);
            return;
        }
        MPI_Rget(into, count(), MPI_DOUBLE, place.holder, at, count(), MPI_DOUBLE, tiles_win_,
                 &gets_[static_cast<std::size_t>(slot)].emplace_back(MPI_REQUEST_NULL));
    }
    void finish_gets(int slot) override {
        std::vector<MPI_Request>& started = gets_[static_cast<std::size_t>(slot)];
        MPI_Waitall(static_cast<int>(started.size()), started.data(), MPI_STATUSES_IGNORE);
        started.clear();
    }

    void start_accumulate(const double* from, Place place) override {
        const auto at = static_cast<MPI_Aint>(first(Matrix::c) + place.index * tile_);
        if (gets_.size() == 1) {
            MPI_Accumulate(from, count(), MPI_DOUBLE, place.holder, at, count(), MPI_DOUBLE, MPI_SUM,
                           tiles_win_);
            MPI_Win_flush(place.holder, tiles_win_);
            return;
        }
        MPI_Raccumulate(from, count(), MPI_DOUBLE, place.holder, at, count(), MPI_DOUBLE, MPI_SUM, tiles_win_,
                        &accumulates_[buffer_of(from)]);
    }
    void finish_accumulate(const double* from) override {
        MPI_Wait(&accumulates_[buffer_of(from)], MPI_STATUS_IGNORE);
    }

    void complete() override {
        MPI_Waitall(static_cast<int>(accumulates_.size()), accumulates_.data(), MPI_STATUSES_IGNORE);
        MPI_Win_flush_all(tiles_win_);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(tiles_win_);
    }
    void restart() override {
        std::memset(tiles(Matrix::c), 0, c_bytes_);
        if (rank_ == 0) *counter_ = 0;
        MPI_Win_sync(tiles_win_);
        MPI_Win_sync(counter_win_);
        barrier();
    }
    void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
    std::vector<double> gather(const std::vector<double>& values) override {
        std::vector<double> all(rank_ == 0 ? values.size() * static_cast<std::size_t>(ranks_) : 0);
        const int each = static_cast<int>(values.size());
        MPI_Gather(values.data(), each, MPI_DOUBLE, all.data(), each, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        return all;
    }
    void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

  private:
    std::size_t first(Matrix matrix) const { return first_[static_cast<std::size_t>(matrix)]; }
    int count() const { return static_cast<int>(tile_); }
    std::size_t buffer_of(const double* from) const {
        return static_cast<std::size_t>(from - buffers_) / tile_;
    }

    int rank_ = 0, ranks_ = 1;
    std::size_t tile_ = 0, c_bytes_ = 0;
    std::size_t first_[matrix_count] = {};  // in doubles, within a rank's tiles
    double *tiles_ = nullptr, *buffers_ = nullptr;
    std::int64_t* counter_ = nullptr;
    MPI_Win tiles_win_ = MPI_WIN_NULL, counter_win_ = MPI_WIN_NULL;
    std::vector<std::vector<MPI_Request>> gets_;  // by slot
    std::vector<MPI_Request> accumulates_;        // by buffer
};

void MpiExchange::allocate(const Problem& problem, int buffers, int slots) {
    tile_ = problem.shape().tile_doubles();
    std::size_t doubles = 0;
    for (const Matrix matrix : {Matrix::a, Matrix::b, Matrix::c}) {
        first_[static_cast<std::size_t>(matrix)] = doubles;
        doubles += problem.room(matrix) * tile_;
    }
    c_bytes_ = problem.room(Matrix::c) * problem.shape().tile_bytes();
    gets_.resize(static_cast<std::size_t>(slots));
    accumulates_.assign(static_cast<std::size_t>(buffers), MPI_REQUEST_NULL);
    const auto bytes_of = [](std::size_t count) { return static_cast<MPI_Aint>(count * sizeof(double)); };
    MPI_Win_allocate(bytes_of(std::max<std::size_t>(doubles, 1)), sizeof(double), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &tiles_, &tiles_win_);
    MPI_Win_allocate(rank_ == 0 ? static_cast<MPI_Aint>(sizeof(std::int64_t)) : 0, sizeof(std::int64_t),
                     MPI_INFO_NULL, MPI_COMM_WORLD, &counter_, &counter_win_);
    MPI_Alloc_mem(bytes_of(static_cast<std::size_t>(buffers) * tile_), MPI_INFO_NULL, &buffers_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, tiles_win_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, counter_win_);
    restart();
}

}  // namespace

std::unique_ptr<Exchange> start_mpi(std::size_t) {
    return std::make_unique<MpiExchange>();
}

}  // namespace bspmm
