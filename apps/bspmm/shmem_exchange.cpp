#include "bspmm/shmem_exchange.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "bspmm/variants.h"

namespace bspmm {

namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t slack = std::size_t{16} << 20;  // heap memory for small allocations
constexpr int worker_niceness = 10;                   // a device serves its hosts first

template <typename T>
T* allocate_symmetric(std::size_t count) {
    void* memory = shmem_align(alignment, std::max<std::size_t>(count, 1) * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
}

int variable(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
}

// A launcher that starts devices as ranks sets a variable (docs/device-ranks.md). Without it, the second half
// of a node's PEs count as devices.
bool is_device() {
    if (const char* kind = std::getenv("OFFPATH_RANK_KIND"); kind != nullptr && *kind != '\0')
        return std::string_view(kind) == "device";
    const int here = variable("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
    return variable("OMPI_COMM_WORLD_LOCAL_RANK", 0) >= (here + 1) / 2;
}

}  // namespace

ShmemExchange::ShmemExchange(std::size_t heap_bytes, bool non_blocking, Roles roles)
    : non_blocking_(non_blocking) {
    setenv("SHMEM_SYMMETRIC_SIZE", std::to_string(heap_bytes + slack).c_str(), 0);
    shmem_init();
    assign_roles(roles);
}

ShmemExchange::~ShmemExchange() {
    shmem_finalize();
}

// Gives every PE a rank: first the PEs that hold tiles.
void ShmemExchange::assign_roles(Roles roles) {
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const bool device = roles == Roles::devices_only_work && is_device();
    if (device) setpriority(PRIO_PROCESS, 0, worker_niceness);
    auto* devices = allocate_symmetric<int>(static_cast<std::size_t>(pes));
    shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe)
        shmem_int_p(devices + me, device ? 1 : 0, pe);
    shmem_barrier_all();
    for (const int kind : {0, 1})
        for (int pe = 0; pe < pes; ++pe)
            if (devices[pe] == kind) pe_of_.push_back(pe);
    holders_ = static_cast<int>(std::count(devices, devices + pes, 0));
    if (holders_ == 0) holders_ = pes;
    rank_ = static_cast<int>(std::find(pe_of_.begin(), pe_of_.end(), me) - pe_of_.begin());
    shmem_free(devices);
}

void ShmemExchange::allocate(const Problem& problem, int buffers, int) {
    tile_ = problem.shape().tile_doubles();
    c_tiles_ = problem.room(Matrix::c);
    for (const Matrix matrix : {Matrix::a, Matrix::b, Matrix::c})
        tiles_[static_cast<std::size_t>(matrix)] = allocate_symmetric<double>(problem.room(matrix) * tile_);
    buffers_ = allocate_symmetric<double>(static_cast<std::size_t>(buffers) * tile_);
    scratch_ = allocate_symmetric<double>(tile_);
    counter_ = allocate_symmetric<long>(1);
    locks_ = allocate_symmetric<long>(c_tiles_);
    std::fill(locks_, locks_ + c_tiles_, 0);
    restart();
}

std::int64_t ShmemExchange::finish_claim() {
    return shmem_long_atomic_fetch_add(counter_, 1, counter_pe());
}

void ShmemExchange::start_get(int, double* into, Matrix matrix, Place place) {
    if (non_blocking_) {
        shmem_getmem_nbi(into, address(matrix, place), tile_bytes(), pe_of(place));
    } else {
        shmem_getmem(into, address(matrix, place), tile_bytes(), pe_of(place));
    }
}

void ShmemExchange::finish_gets(int) {
    if (non_blocking_) shmem_quiet();
}

void ShmemExchange::start_accumulate(const double* from, Place place) {
    const int pe = pe_of(place);
    long* lock = locks_ + place.index;
    // A library that moves data only inside its calls must get the chance to free a lock on this PE. For a
    // lock elsewhere, the PE that holds it may need this core.
    while (shmem_long_atomic_compare_swap(lock, 0, 1, pe) != 0) {
        if (place.holder == rank_) {
            shmem_long_wait_until(lock, SHMEM_CMP_EQ, 0);
        } else {
            sched_yield();
        }
    }
    double* at = address(Matrix::c, place);
    double* sum = at;
    if (place.holder != rank_) {
        sum = scratch_;
        shmem_getmem(sum, at, tile_bytes(), pe);
    }
    for (std::size_t i = 0; i < tile_; ++i)
        sum[i] += from[i];
    if (place.holder != rank_) shmem_putmem(at, sum, tile_bytes(), pe);
    shmem_quiet();
    shmem_long_atomic_set(lock, 0, pe);
}

void ShmemExchange::restart() {
    if (rank_ < holders_) std::memset(tiles(Matrix::c), 0, c_tiles_ * tile_bytes());
    *counter_ = 0;
    shmem_barrier_all();
}

std::vector<double> ShmemExchange::gather(const std::vector<double>& values) {
    const std::size_t all = values.size() * pe_of_.size();
    if (gathered_doubles_ < all) {
        if (gathered_ != nullptr) shmem_free(gathered_);
        gathered_ = allocate_symmetric<double>(all);
        gathered_doubles_ = all;
    }
    shmem_barrier_all();
    shmem_putmem(gathered_ + static_cast<std::size_t>(rank_) * values.size(), values.data(),
                 values.size() * sizeof(double), pe_of_[0]);
    shmem_barrier_all();
    return rank_ == 0 ? std::vector<double>(gathered_, gathered_ + all) : std::vector<double>();
}

std::unique_ptr<Exchange> start_shmem(std::size_t heap_bytes) {
    return std::make_unique<ShmemExchange>(heap_bytes, false, Roles::all_hold);
}

std::unique_ptr<Exchange> start_shmem_nbi(std::size_t heap_bytes) {
    return std::make_unique<ShmemExchange>(heap_bytes, true, Roles::all_hold);
}

}  // namespace bspmm
