// OpenSHMEM with all communication left to the devices: gets, the counter and sums into C are outstanding
// while the host computes. The device of a tile's holder adds to the tile, so no locks are needed. Each
// operation that is waited for separately has its own context: each claim, the gets of each slot, and each of
// the two sums.
#include <shmemx.h>

#include <algorithm>
#include <new>

#include "bspmm/shmem_exchange.h"
#include "bspmm/variants.h"

namespace bspmm {

namespace {

class OffloadContext {
  public:
    OffloadContext() {
        if (shmem_ctx_create(SHMEM_CTX_SERIALIZED, &context_) != 0) throw std::bad_alloc();
    }
    OffloadContext(OffloadContext&& other) noexcept { std::swap(context_, other.context_); }
    OffloadContext(const OffloadContext&) = delete;
    OffloadContext& operator=(const OffloadContext&) = delete;
    ~OffloadContext() {
        if (context_ != SHMEM_CTX_INVALID) shmem_ctx_destroy(context_);
    }
    operator shmem_ctx_t() const { return context_; }
    void quiet() { shmem_ctx_quiet(context_); }

  private:
    shmem_ctx_t context_ = SHMEM_CTX_INVALID;
};

class OffloadExchange final : public ShmemExchange {
  public:
    using ShmemExchange::ShmemExchange;

    void allocate(const Problem& problem, int buffers, int slots) override {
        claimed_ = static_cast<long*>(shmem_calloc(static_cast<std::size_t>(slots), sizeof(long)));
        claims_ = std::vector<OffloadContext>(static_cast<std::size_t>(slots));
        gets_ = std::vector<OffloadContext>(static_cast<std::size_t>(slots));
        sums_ = std::vector<OffloadContext>(static_cast<std::size_t>(buffers));
        ShmemExchange::allocate(problem, buffers, slots);
    }

    void start_claim() override {
        const std::size_t at = started_++ % claims_.size();
        shmem_ctx_long_atomic_fetch_add_nbi(claims_[at], claimed_ + at, counter(), 1, counter_pe());
    }
    std::int64_t finish_claim() override {
        const std::size_t at = finished_++ % claims_.size();
        claims_[at].quiet();
        return claimed_[at];
    }
    void start_get(int slot, double* into, Matrix matrix, Place place) override {
        shmem_ctx_getmem_nbi(gets_[static_cast<std::size_t>(slot)], into, address(matrix, place),
                             tile_bytes(), pe_of(place));
    }
    void finish_gets(int slot) override { gets_[static_cast<std::size_t>(slot)].quiet(); }
    void start_accumulate(const double* from, Place place) override {
        shmemx_ctx_double_accumulate_nbi(sum_of(from), address(Matrix::c, place), from, tile_doubles(),
                                         pe_of(place));
    }
    void finish_accumulate(const double* from) override { sum_of(from).quiet(); }

    void complete() override {
        for (OffloadContext& context : sums_)
            context.quiet();
        ShmemExchange::complete();
    }

  private:
    OffloadContext& sum_of(const double* from) {
        return sums_[static_cast<std::size_t>(from - buffer(0)) / tile_doubles()];
    }

    long* claimed_ = nullptr;                           // one for each outstanding claim
    std::size_t started_ = 0, finished_ = 0;            // claims
    std::vector<OffloadContext> claims_, gets_, sums_;  // sums_: by buffer
};

}  // namespace

std::unique_ptr<Exchange> start_offload(std::size_t heap_bytes) {
    return std::make_unique<OffloadExchange>(heap_bytes, true, Roles::all_hold);
}

std::unique_ptr<Exchange> start_compute_offload(std::size_t heap_bytes) {
    return std::make_unique<OffloadExchange>(heap_bytes, true, Roles::devices_only_work);
}

}  // namespace bspmm
