// OpenSHMEM with everything left to the devices: gets, the counter and sums into C are started and finished
// by the quiet that comes one product later. The device of a tile's holder adds to it, so there are no locks.
#include <shmemx.h>

#include <algorithm>

#include "bspmm/shmem_exchange.h"
#include "bspmm/variants.h"

namespace bspmm {

namespace {

class OffloadExchange final : public ShmemExchange {
  public:
    OffloadExchange(std::size_t heap_bytes, Roles roles) : ShmemExchange(heap_bytes, true, roles) {
        claimed_ = static_cast<long*>(shmem_calloc(1, sizeof(long)));
    }

    void start_claim() override {
        shmem_long_atomic_fetch_add_nbi(claimed_, counter(), 1, counter_pe());
        ++started_;
        claim_ = started_;
    }
    std::int64_t finish_claim() override {
        finish(claim_);
        return *claimed_;
    }
    void start_get(int slot, double* into, Matrix matrix, Place place) override {
        ShmemExchange::start_get(slot, into, matrix, place);
        ++started_;
    }
    void finish_gets(int) override { finish(started_); }
    void start_accumulate(const double* from, Place place) override {
        shmemx_double_accumulate_nbi(address(Matrix::c, place), from, tile_doubles(), pe_of(place));
        ++started_;
        for (Accumulate& last : accumulates_)
            if (last.from == from || last.from == nullptr) {
                last = {from, started_};
                return;
            }
    }
    void finish_accumulate(const double* from) override {
        for (const Accumulate& last : accumulates_)
            if (last.from == from) finish(last.number);
    }

  private:
    struct Accumulate {
        const double* from = nullptr;
        std::uint64_t number = 0;
    };

    // A quiet finishes all that was started before it; one is enough for whatever came together.
    void finish(std::uint64_t number) {
        if (number <= finished_) return;
        shmem_quiet();
        finished_ = started_;
    }

    long* claimed_ = nullptr;
    std::uint64_t started_ = 0, finished_ = 0, claim_ = 0;
    Accumulate accumulates_[2];  // the last one of each of the kernel's sums
};

}  // namespace

std::unique_ptr<Exchange> start_offload(std::size_t heap_bytes) {
    return std::make_unique<OffloadExchange>(heap_bytes, Roles::all_hold);
}

std::unique_ptr<Exchange> start_compute_offload(std::size_t heap_bytes) {
    return std::make_unique<OffloadExchange>(heap_bytes, Roles::devices_only_work);
}

}  // namespace bspmm
