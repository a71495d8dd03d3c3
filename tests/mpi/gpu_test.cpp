// Buffers in GPU memory on some ranks: every call that the device serves gives the right result, and neither
// the host nor the device touches that memory. There is no GPU here: a library in place of CUDA's driver
// allocates memory that crashes a program that touches it (fake_cuda.cpp).
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "check.h"

namespace {

int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
int (*allocate_managed)(std::uint64_t*, std::size_t, unsigned) = nullptr;
int (*copy)(std::uint64_t, std::uint64_t, std::size_t) = nullptr;

void load_driver() {
    void* driver = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) std::abort();
    allocate = reinterpret_cast<decltype(allocate)>(dlsym(driver, "cuMemAlloc_v2"));
    allocate_managed = reinterpret_cast<decltype(allocate_managed)>(dlsym(driver, "cuMemAllocManaged"));
    copy = reinterpret_cast<decltype(copy)>(dlsym(driver, "cuMemcpy"));
}

enum class Where { host, gpu, managed };

// Ints in one of these places. The place depends on the rank, so the buffers of one call differ.
class Buffer {
  public:
    Buffer(std::size_t ints, int value) : ints_(ints) {
        const auto bytes = ints * sizeof(int);
        const std::array places = {Where::gpu, Where::host, Where::managed};
        where_ = places[static_cast<std::size_t>(check::rank_of(MPI_COMM_WORLD) + shift++) % places.size()];
        if (where_ == Where::host) {
            host_.resize(ints);
            address_ = reinterpret_cast<std::uint64_t>(host_.data());
        } else if ((where_ == Where::gpu ? allocate(&address_, bytes)
                                         : allocate_managed(&address_, bytes, 1)) != 0) {
            std::abort();
        }
        set(std::vector<int>(ints, value));
    }
    int* data() const { return reinterpret_cast<int*>(address_); }
    void set(const std::vector<int>& values) const {
        copy(address_, reinterpret_cast<std::uint64_t>(values.data()), values.size() * sizeof(int));
    }
    std::vector<int> get() const {
        std::vector<int> values(ints_);
        copy(reinterpret_cast<std::uint64_t>(values.data()), address_, ints_ * sizeof(int));
        return values;
    }
    void expect(const std::vector<int>& values, const std::string& name) const {
        check::that(get() == values, "{}, buffer at place {}", name, static_cast<int>(where_));
    }

  private:
    static inline int shift = 0;
    std::size_t ints_;
    Where where_ = Where::host;
    std::vector<int> host_;
    std::uint64_t address_ = 0;
};

constexpr int count = 5000;
using Ints = std::vector<int>;

int ranks() {
    return check::size_of(MPI_COMM_WORLD);
}
int rank() {
    return check::rank_of(MPI_COMM_WORLD);
}

void finish(MPI_Request& request) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void broadcast(int root) {
    const Buffer data(count, rank() == root ? 17 + root : 0);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), count, MPI_INT, root, MPI_COMM_WORLD, &request);
    finish(request);
    data.expect(Ints(count, 17 + root), "ibcast");
}

Ints by_rank(int block, int factor) {
    Ints values;
    for (int r = 0; r < ranks(); ++r)
        values.insert(values.end(), static_cast<std::size_t>(block), 1 + factor * r);
    return values;
}

void gather_everywhere() {
    const auto all = static_cast<std::size_t>(ranks()) * count;
    const Buffer mine(count, 1 + 3 * rank()), result(all, 0), in_place(all, 1 + 3 * rank());
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine.data(), count, MPI_INT, result.data(), count, MPI_INT, MPI_COMM_WORLD, &request);
    finish(request);
    result.expect(by_rank(count, 3), "iallgather");
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, in_place.data(), count, MPI_INT, MPI_COMM_WORLD, &request);
    finish(request);
    in_place.expect(by_rank(count, 3), "iallgather in place");
}

void all_to_all() {
    const auto all = static_cast<std::size_t>(ranks()) * count;
    const Buffer out(all, 1 + 5 * rank()), result(all, 0), by_pairs(all, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(out.data(), count, MPI_INT, result.data(), count, MPI_INT, MPI_COMM_WORLD, &request);
    finish(request);
    result.expect(by_rank(count, 5), "ialltoall");
    Ints counts(static_cast<std::size_t>(ranks()), count), places;
    for (int r = 0; r < ranks(); ++r)
        places.push_back(r * count);
    MPI_Ialltoallv(out.data(), counts.data(), places.data(), MPI_INT, by_pairs.data(), counts.data(),
                   places.data(), MPI_INT, MPI_COMM_WORLD, &request);
    finish(request);
    by_pairs.expect(by_rank(count, 5), "ialltoallv");
}

void reductions() {
    const int sum = ranks() * (ranks() + 1) / 2;
    const auto all = static_cast<std::size_t>(ranks()) * count;
    const Buffer mine(count, rank() + 1), result(count, 0), in_place(count, rank() + 1);
    const Buffer whole(all, rank() + 1), part(count, 0), scanned(count, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(mine.data(), result.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    finish(request);
    result.expect(Ints(count, sum), "iallreduce");
    MPI_Iallreduce(MPI_IN_PLACE, in_place.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    finish(request);
    in_place.expect(Ints(count, sum), "iallreduce in place");
    MPI_Ireduce(mine.data(), rank() == 0 ? result.data() : nullptr, count, MPI_INT, MPI_MAX, 0,
                MPI_COMM_WORLD, &request);
    finish(request);
    result.expect(Ints(count, rank() == 0 ? ranks() : sum), "ireduce");
    MPI_Ireduce_scatter_block(whole.data(), part.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    finish(request);
    part.expect(Ints(count, sum), "ireduce_scatter_block");
    MPI_Iexscan(mine.data(), scanned.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    finish(request);
    scanned.expect(Ints(count, rank() * (rank() + 1) / 2), "iexscan");
}

// Transfers every second int.
void with_gaps() {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(count, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    const Buffer data(2 * count, rank() == 0 ? 9 : 4);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), 1, type, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    finish(request);
    Ints expected(2 * count, rank() == 0 ? 9 : 4);
    for (std::size_t i = 0; i < expected.size(); i += 2)
        expected[i] = 9;
    data.expect(expected, "ibcast with gaps");
}

void messages(int tag) {
    const int next = (rank() + 1) % ranks();
    const int previous = (rank() + ranks() - 1) % ranks();
    const Buffer out(count, rank()), in(count, -1), any(count, -1);
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(in.data(), count, MPI_INT, previous, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), count, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    in.expect(Ints(count, previous), "receive");
    MPI_Sendrecv(out.data(), count, MPI_INT, next, tag, any.data(), count, MPI_INT, MPI_ANY_SOURCE, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    any.expect(Ints(count, previous), "receive from any source");
    // The message comes from the host and is not larger than a header. The front end receives it and copies.
    const Buffer few(2, -1);
    const Ints two = {rank(), rank()};
    MPI_Isend(two.data(), 2, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv(few.data(), 2, MPI_INT, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    finish(requests[0]);
    few.expect({previous, previous}, "short receive");
}

Ints sum_of(const Ints& a, int b) {
    Ints sum = a;
    for (int& each : sum)
        each += b;
    return sum;
}

// Origins and results in GPU memory, of operations on the next rank's memory.
void one_sided() {
    const int next = (rank() + 1) % ranks(), previous = (rank() + ranks() - 1) % ranks();
    Ints memory(2 * count, 0);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Datatype gaps = MPI_DATATYPE_NULL;
    MPI_Type_vector(count, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    const Buffer out(count, 7 + rank()), spread(2 * count, 50 + rank());
    MPI_Win_fence(0, win);
    MPI_Put(out.data(), count, MPI_INT, next, 0, count, MPI_INT, win);
    MPI_Put(spread.data(), 1, gaps, next, count, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    Ints expected(count, 7 + previous);
    expected.resize(2 * count, 50 + previous);
    check::that(memory == expected, "puts brought something else");
    MPI_Barrier(MPI_COMM_WORLD);  // the next operations change the memory
    MPI_Accumulate(out.data(), count, MPI_INT, next, 0, count, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    const Buffer in(count, -1), into_gaps(2 * count, -1), fetched(count, -1);
    MPI_Get(in.data(), count, MPI_INT, next, 0, count, MPI_INT, win);
    MPI_Get(into_gaps.data(), 1, gaps, next, count, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    const Ints doubled(count, 14 + 2 * rank());
    in.expect(doubled, "get");
    Ints every_second(2 * count, -1);
    for (std::size_t i = 0; i < every_second.size(); i += 2)
        every_second[i] = 50 + rank();
    into_gaps.expect(every_second, "get with gaps");
    MPI_Get_accumulate(out.data(), count, MPI_INT, fetched.data(), count, MPI_INT, next, 0, count, MPI_INT,
                       MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    fetched.expect(doubled, "get_accumulate");

    const int now = 21 + 3 * rank();
    const Buffer five(1, 5), before(1, -1), other(1, now + 5), last(1, 99), swapped(1, -1), all(count, -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(five.data(), before.data(), MPI_INT, next, 0, MPI_SUM, win);
    MPI_Win_flush(next, win);
    before.expect({now}, "fetch_and_op");
    MPI_Compare_and_swap(last.data(), other.data(), swapped.data(), MPI_INT, next, 0, win);
    MPI_Win_flush(next, win);
    swapped.expect({now + 5}, "compare_and_swap");
    MPI_Rget(all.data(), count, MPI_INT, next, 0, count, MPI_INT, win, &request);
    finish(request);
    Ints after = sum_of(doubled, 7 + rank());
    after[0] = 99;
    all.expect(after, "rget");
    MPI_Win_unlock_all(win);
    MPI_Type_free(&gaps);
    MPI_Win_free(&win);
}

// A window of which one rank's memory is on a GPU is the host's; such memory cannot be attached to a window
// on the device.
void windows_of_gpus() {
    std::uint64_t address = 0;
    if (allocate(&address, 4096) != 0) std::abort();
    void* const gpu = reinterpret_cast<void*>(address);
    Ints memory(1024);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(rank() == 0 ? gpu : memory.data(), 4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    int its_class = MPI_SUCCESS;
    MPI_Error_class(MPI_Win_attach(win, gpu, 4096), &its_class);
    check::that(its_class == MPI_ERR_RMA_ATTACH, "attaching GPU memory: class {}", its_class);
    check::that(MPI_Win_attach(win, memory.data(), 4096) == MPI_SUCCESS, "host memory cannot be attached");
    MPI_Win_detach(win, memory.data());
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    const bool early = argc > 1 && std::strcmp(argv[1], "early") == 0;
    if (early) load_driver();
    MPI_Init(&argc, &argv);
    if (!early) {
        {
            Ints data(count);
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Ibcast(data.data(), count, MPI_INT, 0, MPI_COMM_WORLD, &request);
            finish(request);
        }
        load_driver();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a driver needs some time to start
    }
    if (argc > 1 && std::strcmp(argv[1], "windows") == 0) {
        for (int round = 0; round < 3; ++round)
            one_sided();
        windows_of_gpus();
        return check::finish();
    }
    for (int root = 0; root < ranks(); ++root) {
        broadcast(root);
        gather_everywhere();
        all_to_all();
        reductions();
        with_gaps();
        messages(root);
    }
    return check::finish();
}
