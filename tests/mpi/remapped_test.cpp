// Memory that the program unmaps and maps again at the same address. Operations read and write the new memory
// and never the old one, and data of earlier operations never reach the new memory.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "check.h"

namespace {

constexpr int ints = 1 << 16;  // of a block: 256 KiB
constexpr std::size_t block_bytes = std::size_t{ints} * 4;
constexpr int rounds = 3;

int rank, size, next, previous;

// Pages at one address. After each renew() they are new ones.
class Pages {
  public:
    explicit Pages(std::size_t bytes, void* where = nullptr) : bytes_(bytes) { map(where); }
    ~Pages() { munmap(memory_, bytes_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    void renew() {
        munmap(memory_, bytes_);
        map(memory_);
    }
    // True: nothing is mapped there.
    static bool is_free(std::size_t bytes, void* where) {
        void* const found =
            mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (found == MAP_FAILED) return false;
        munmap(found, bytes);
        return found == where;
    }
    int* ints() const { return static_cast<int*>(memory_); }
    std::size_t count() const { return bytes_ / 4; }
    void fill(int value) const { std::fill_n(ints(), count(), value); }
    bool holds(int value) const {
        return std::all_of(ints(), ints() + count(), [&](int i) { return i == value; });
    }

  private:
    void map(void* where) {
        memory_ = mmap(where, bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0);
        if (memory_ != MAP_FAILED && (where == nullptr || memory_ == where)) return;
        std::perror("mmap under the address that was just unmapped");
        PMPI_Abort(MPI_COMM_WORLD, 3);
    }

    std::size_t bytes_;
    void* memory_ = nullptr;
};

int value_of(int from, int round) {
    return (from + 1) * 1000 + round;
}

bool all_are(const int* first, int value) {
    return std::all_of(first, first + ints, [&](int i) { return i == value; });
}

constexpr int unused = 0x5A5A5A5A;

// In each round the pages are new, and an operation goes from `send` to `recv`. Then another operation uses
// other memory and must leave the newest pages alone.
template <typename Move>
void in_new_pages(const char* what, std::size_t send_blocks, std::size_t recv_blocks, Move move) {
    Pages send(send_blocks * block_bytes), recv(recv_blocks * block_bytes);
    for (int round = 0; round < rounds; ++round) {
        send.fill(value_of(rank, round));
        move(what, send, recv, round);
        send.renew();
        recv.renew();
    }
    send.fill(unused);
    recv.fill(unused);
    PMPI_Barrier(MPI_COMM_WORLD);
    {
        Pages others(send_blocks * block_bytes), there(recv_blocks * block_bytes);
        others.fill(value_of(rank, rounds));
        move(what, others, there, rounds);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    check::that(send.holds(unused) && recv.holds(unused), "{}: new memory was written by an old operation",
                what);
}

void wait(MPI_Request& request) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void gathers(const char* what, const Pages& send, const Pages& recv, int round) {
    MPI_Request request;
    MPI_Iallgather(send.ints(), ints, MPI_INT, recv.ints(), ints, MPI_INT, MPI_COMM_WORLD, &request);
    wait(request);
    for (int from = 0; from < size; ++from)
        check::that(all_are(recv.ints() + std::ptrdiff_t{from} * ints, value_of(from, round)),
                    "{}, round {}: the block of rank {}", what, round, from);
}

void reduces(const char* what, const Pages& send, const Pages& recv, int round) {
    MPI_Request request;
    MPI_Iallreduce(send.ints(), recv.ints(), ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    wait(request);
    int sum = 0;
    for (int from = 0; from < size; ++from)
        sum += value_of(from, round);
    check::that(all_are(recv.ints(), sum), "{}, round {}", what, round);
}

void sends(const char* what, const Pages& send, const Pages& recv, int round) {
    for (int source : {previous, int{MPI_ANY_SOURCE}}) {
        recv.fill(0);
        MPI_Request requests[2];
        MPI_Irecv(recv.ints(), ints, MPI_INT, source, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(send.ints(), ints, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check::that(recv.holds(value_of(previous, round)), "{}, round {}, source {}", what, round, source);
    }
}

// `recv` is the window. The data of `send` are put and got.
void with_window(const char* what, MPI_Win win, MPI_Aint there, const Pages& send, const Pages& recv,
                 int round) {
    recv.fill(0);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Put(send.ints(), ints, MPI_INT, next, there, ints, MPI_INT, win);
    MPI_Win_flush(next, win);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    check::that(recv.holds(value_of(previous, round)), "{}, round {}: what was put", what, round);
    send.fill(0);
    MPI_Get(send.ints(), ints, MPI_INT, next, there, ints, MPI_INT, win);
    MPI_Win_flush(next, win);
    MPI_Win_unlock_all(win);
    check::that(send.holds(value_of(rank, round)), "{}, round {}: what was gotten", what, round);
    PMPI_Barrier(MPI_COMM_WORLD);
}

void windows(const char* what, const Pages& send, const Pages& recv, int round) {
    MPI_Win win;
    MPI_Win_create(recv.ints(), static_cast<MPI_Aint>(block_bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    with_window(what, win, 0, send, recv, round);
    MPI_Win_free(&win);
}

MPI_Win ranges = MPI_WIN_NULL;  // one dynamic window for all rounds

void attached(const char* what, const Pages& send, const Pages& recv, int round) {
    MPI_Win_attach(ranges, recv.ints(), static_cast<MPI_Aint>(block_bytes));
    MPI_Aint mine, there;
    PMPI_Get_address(recv.ints(), &mine);
    PMPI_Sendrecv(&mine, 1, MPI_AINT, previous, 2, &there, 1, MPI_AINT, next, 2, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE);
    with_window(what, ranges, there, send, recv, round);
    MPI_Win_detach(ranges, recv.ints());
}

// Memory of MPI_Alloc_mem, which the device has mapped too, is freed, and its address is used again.
void after_alloc_mem() {
    const std::size_t bytes = block_bytes * static_cast<std::size_t>(size);
    // The host's MPI keeps such memory. With offpath it is unmapped, and its address is free unless it was
    // reused.
    const bool unmapped = std::getenv("LD_PRELOAD") != nullptr && size > 1;
    int used_again = 0;
    for (int round = 0; round < rounds; ++round) {
        void *send, *recv;
        MPI_Alloc_mem(static_cast<MPI_Aint>(block_bytes), MPI_INFO_NULL, static_cast<void*>(&send));
        MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, static_cast<void*>(&recv));
        MPI_Request request;
        std::fill_n(static_cast<int*>(send), ints, value_of(rank, round));
        MPI_Iallgather(send, ints, MPI_INT, recv, ints, MPI_INT, MPI_COMM_WORLD, &request);
        wait(request);
        for (int from = 0; from < size; ++from)
            check::that(all_are(static_cast<int*>(recv) + std::ptrdiff_t{from} * ints, value_of(from, round)),
                        "MPI_Alloc_mem, round {}: the block of rank {}", round, from);
        MPI_Free_mem(send);
        MPI_Free_mem(recv);
        int is_free = unmapped && Pages::is_free(block_bytes, send) && Pages::is_free(bytes, recv) ? 1 : 0;
        PMPI_Allreduce(MPI_IN_PLACE, &is_free, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (is_free == 0) continue;
        ++used_again;
        const Pages again(block_bytes, send), there(bytes, recv);
        again.fill(value_of(rank, round + 100));
        gathers("where MPI_Alloc_mem was", again, there, round + 100);
        sends("where MPI_Alloc_mem was", again, Pages(block_bytes), round + 100);
    }
    check::that(used_again > 0 || !unmapped, "no address of MPI_Alloc_mem was free again");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    in_new_pages("Iallgather", 1, static_cast<std::size_t>(size), gathers);
    in_new_pages("Iallreduce", 1, 1, reduces);
    in_new_pages("messages", 1, 1, sends);
    if (size > 1) {  // Open MPI 4.1 cannot have all of these windows on one rank
        in_new_pages("windows", 1, 1, windows);
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &ranges);
        in_new_pages("attached memory", 1, 1, attached);
        MPI_Win_free(&ranges);
    }
    after_alloc_mem();
    return check::finish();
}
