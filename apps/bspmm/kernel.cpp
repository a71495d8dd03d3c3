#include "bspmm/kernel.h"

#include <cblas.h>
#include <time.h>

#include <cstring>

namespace bspmm {

namespace {

double seconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Adds its lifetime to a phase.
class Timed {
  public:
    explicit Timed(double& phase) : phase_(phase), begun_(seconds(CLOCK_MONOTONIC)) {}
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed() { phase_ += seconds(CLOCK_MONOTONIC) - begun_; }

  private:
    double& phase_;
    const double begun_;
};

// The number of sums for tiles of C: the kernel adds to one while others are being sent.
int sums_for(int lookahead) {
    return lookahead + 1;
}

class Kernel {
  public:
    Kernel(const Problem& problem, Exchange& exchange, int lookahead, std::int64_t limit)
        : problem_(problem),
          exchange_(exchange),
          slots_(static_cast<std::size_t>(slots_for(lookahead))),
          sums_(static_cast<std::size_t>(sums_for(lookahead))),
          limit_(limit) {
        int next = 0;
        for (double*& sum : sums_)
            sum = exchange.buffer(next++);
        for (Slot& slot : slots_) {
            slot.a = exchange.buffer(next++);
            slot.b = exchange.buffer(next++);
        }
        phases_.got.assign(static_cast<std::size_t>(exchange.ranks()), 0);
        phases_.added.assign(static_cast<std::size_t>(exchange.ranks()), 0);
    }

    Phases run();

  private:
    struct Slot {
        std::int64_t unit = -1;  // -1: none
        double *a = nullptr, *b = nullptr;
    };

    void claim();
    std::int64_t claimed();
    void begin(int slot, std::int64_t unit) { slots_[static_cast<std::size_t>(slot)].unit = unit; }
    void get(int slot);
    void fetch(int slot, Matrix matrix, int tile, double* into);
    void finish_gets(int slot);
    void compute(const Slot& slot);
    void update_before(std::int64_t next);
    void run_in_turn();
    void run_ahead();

    const Problem& problem_;
    Exchange& exchange_;
    std::vector<Slot> slots_;
    std::vector<double*> sums_;
    const std::int64_t limit_;
    std::size_t sum_ = 0;
    int c_ = -1;      // the tile that the sum belongs to
    int claims_ = 0;  // started and not finished
    Phases phases_;
};

void Kernel::claim() {
    const Timed timed(phases_.claim_s);
    exchange_.start_claim();
    ++claims_;
}

// Returns the number of the oldest claimed unit, or -1 if there is none.
std::int64_t Kernel::claimed() {
    if (claims_ == 0) return -1;
    const Timed timed(phases_.claim_s);
    --claims_;
    const std::int64_t unit = exchange_.finish_claim();
    return unit < limit_ ? unit : -1;
}

void Kernel::get(int slot) {
    const Slot& at = slots_[static_cast<std::size_t>(slot)];
    if (at.unit < 0) return;
    const WorkUnit& work = problem_.units()[static_cast<std::size_t>(at.unit)];
    fetch(slot, Matrix::a, work.a, at.a);
    fetch(slot, Matrix::b, work.b, at.b);
}

void Kernel::finish_gets(int slot) {
    const Timed timed(phases_.get_s);
    exchange_.finish_gets(slot);
}

void Kernel::fetch(int slot, Matrix matrix, int tile, double* into) {
    const Place place = problem_.place(matrix, tile);
    if (place.holder == exchange_.rank()) {
        const Timed timed(phases_.copy_s);
        std::memcpy(into, exchange_.tiles(matrix) + place.index * problem_.shape().tile_doubles(),
                    problem_.shape().tile_bytes());
        return;
    }
    const Timed timed(phases_.get_s);
    exchange_.start_get(slot, into, matrix, place);
    ++phases_.gets;
    phases_.got[static_cast<std::size_t>(place.holder)] += static_cast<double>(problem_.shape().tile_bytes());
}

void Kernel::compute(const Slot& slot) {
    const WorkUnit& work = problem_.units()[static_cast<std::size_t>(slot.unit)];
    if (c_ < 0) {
        const Timed timed(phases_.accumulate_s);
        exchange_.finish_accumulate(sums_[sum_]);
    }
    const Timed timed(phases_.compute_s);
    const double begun = seconds(CLOCK_THREAD_CPUTIME_ID);
    multiply(problem_.shape().tile, slot.a, slot.b, c_ >= 0, sums_[sum_]);
    phases_.compute_cpu_s += seconds(CLOCK_THREAD_CPUTIME_ID) - begun;
    c_ = work.c;
    ++phases_.units;
}

// Starts to add the sum to C, unless the next unit belongs to the same tile.
void Kernel::update_before(std::int64_t next) {
    if (c_ < 0 || (next >= 0 && problem_.units()[static_cast<std::size_t>(next)].c == c_)) return;
    const Timed timed(phases_.accumulate_s);
    const Place place = problem_.place(Matrix::c, c_);
    exchange_.start_accumulate(sums_[sum_], place);
    ++phases_.accumulates;
    if (place.holder != exchange_.rank())
        phases_.added[static_cast<std::size_t>(place.holder)] +=
            static_cast<double>(problem_.shape().tile_bytes());
    sum_ = (sum_ + 1) % sums_.size();
    c_ = -1;
}

void Kernel::run_in_turn() {
    for (;;) {
        claim();
        begin(0, claimed());
        update_before(slots_[0].unit);
        if (slots_[0].unit < 0) return;
        get(0);
        finish_gets(0);
        compute(slots_[0]);
    }
}

void Kernel::run_ahead() {
    const int slots = static_cast<int>(slots_.size());
    // Unit numbers are requested twice as far ahead as tiles are. On links that are full, a small message
    // takes as long as the large ones before it.
    for (int ahead = 0; ahead + 1 < slots; ++ahead)
        claim();
    for (int slot = 0; slot + 1 < slots; ++slot) {
        begin(slot, claimed());
        get(slot);
        claim();
    }
    for (int current = 0; slots_[static_cast<std::size_t>(current)].unit >= 0;) {
        finish_gets(current);
        // The previous slot in the ring is free.
        const int last = (current + slots - 1) % slots;
        begin(last, claimed());
        get(last);
        if (slots_[static_cast<std::size_t>(last)].unit >= 0) claim();
        compute(slots_[static_cast<std::size_t>(current)]);
        current = (current + 1) % slots;
        update_before(slots_[static_cast<std::size_t>(current)].unit);
    }
    while (claims_ > 0)
        claimed();
}

Phases Kernel::run() {
    exchange_.barrier();
    {
        const Timed timed(phases_.total_s);
        if (slots_.size() == 1) {
            run_in_turn();
        } else {
            run_ahead();
        }
        const Timed timed_finish(phases_.finish_s);
        exchange_.complete();
    }
    return phases_;
}

}  // namespace

int slots_for(int lookahead) {
    return lookahead + 1;
}

int buffers_for(int lookahead) {
    return sums_for(lookahead) + 2 * slots_for(lookahead);
}

Phases run_kernel(const Problem& problem, Exchange& exchange, int lookahead, std::int64_t limit) {
    return Kernel(problem, exchange, lookahead, limit).run();
}

void multiply(int tile, const double* a, const double* b, bool add, double* c) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tile, tile, tile, 1.0, a, tile, b, tile,
                add ? 1.0 : 0.0, c, tile);
}

}  // namespace bspmm
