// OpenSHMEM, by calls of version 1.4 only, so that it works with any library: tiles, buffers, counter and
// locks are on the symmetric heap.
//
// A tile of C is updated under a lock of its own at its holder: get, add, put, quiet. OpenSHMEM has no call
// that adds floating-point numbers, and exchanging one number at a time would take a round trip each.
#pragma once

#include <shmem.h>

#include <cstddef>
#include <vector>

#include "bspmm/exchange.h"

namespace bspmm {

enum class Roles { all_hold, devices_only_work };

class ShmemExchange : public Exchange {
  public:
    // `non_blocking`: gets are only started, and the quiet of finish_gets() completes them.
    ShmemExchange(std::size_t heap_bytes, bool non_blocking, Roles roles);
    ShmemExchange(const ShmemExchange&) = delete;
    ShmemExchange& operator=(const ShmemExchange&) = delete;
    ~ShmemExchange() override;

    int rank() const override { return rank_; }
    int ranks() const override { return static_cast<int>(pe_of_.size()); }
    int holders() const override { return holders_; }

    void allocate(const Problem& problem, int buffers, int slots) override;
    double* tiles(Matrix matrix) override { return tiles_[static_cast<std::size_t>(matrix)]; }
    double* buffer(int index) override { return buffers_ + static_cast<std::size_t>(index) * tile_; }

    void start_claim() override {}
    std::int64_t finish_claim() override;
    void start_get(int slot, double* into, Matrix matrix, Place place) override;
    void finish_gets(int slot) override;
    void start_accumulate(const double* from, Place place) override;
    void finish_accumulate(const double*) override {}

    void complete() override { shmem_barrier_all(); }
    void restart() override;
    void barrier() override { shmem_barrier_all(); }
    std::vector<double> gather(const std::vector<double>& values) override;
    void abort(int code) override { shmem_global_exit(code); }

  protected:
    // The PE that holds a tile, and the address of the tile there.
    int pe_of(Place place) const { return pe_of_[static_cast<std::size_t>(place.holder)]; }
    double* address(Matrix matrix, Place place) { return tiles(matrix) + place.index * tile_; }
    std::size_t tile_doubles() const { return tile_; }
    std::size_t tile_bytes() const { return tile_ * sizeof(double); }
    long* counter() { return counter_; }
    int counter_pe() const { return pe_of_[0]; }

  private:
    void assign_roles(Roles roles);

    const bool non_blocking_;
    int rank_ = 0, holders_ = 1;
    std::vector<int> pe_of_;  // by rank
    std::size_t tile_ = 0, c_tiles_ = 0;
    double* tiles_[matrix_count] = {};
    double *buffers_ = nullptr, *scratch_ = nullptr;
    double* gathered_ = nullptr;
    std::size_t gathered_doubles_ = 0;
    long *counter_ = nullptr, *locks_ = nullptr;
};

}  // namespace bspmm
