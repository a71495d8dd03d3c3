// Ordinary buffers that are used again and again: the device maps their pages. The program sees no
// difference, whatever it does with the memory afterwards: it frees it, moves it, unmaps it behind
// everybody's back, forks. Other threads write beside the buffers all the time.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t bytes = std::size_t{5} << 20;
constexpr int uses = 5;  // the device maps pages from the fifth one on

int rank, size, next, previous;
bool expected = false;  // that pages are shared

// Of those at [address, address + bytes) that belong to the file that the device maps.
std::size_t shared_bytes(unsigned long begin) {
    const unsigned long end = begin + bytes;
    std::size_t sum = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long from = 0, to = 0;
        if (line.find("offpath-pages") == std::string::npos ||
            std::sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2)
            continue;
        from = std::max(from, begin), to = std::min(to, end);
        if (from < to) sum += to - from;
    }
    return sum;
}

unsigned char value_at(int from, int seed, std::size_t i) {
    return static_cast<unsigned char>(i * 7 + i / 4096 * 13 +
                                      static_cast<std::size_t>(from * 31 + seed * 101));
}

// Sends `send` to the next rank and receives in `recv`, after the program has written all of both.
void exchange(const char* what, unsigned char* send, unsigned char* recv, int seed) {
    for (std::size_t i = 0; i < bytes; ++i)
        send[i] = value_at(rank, seed, i);
    std::memset(recv, 0, bytes);
    MPI_Request requests[2];
    MPI_Irecv(recv, static_cast<int>(bytes), MPI_BYTE, previous, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(send, static_cast<int>(bytes), MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        wrong += recv[i] != value_at(previous, seed, i) || send[i] != value_at(rank, seed, i);
    check::that(wrong == 0, "{}, exchange {}: {} wrong bytes", what, seed, wrong);
}

void exchange_often(const char* what, unsigned char* send, unsigned char* recv, int seed) {
    for (int i = 0; i < uses; ++i)
        exchange(what, send, recv, seed + i);
}

void exchange_until_shared(const char* what, unsigned char* send, unsigned char* recv, int seed) {
    exchange_often(what, send, recv, seed);
    if (!expected) return;
    for (const unsigned char* buffer : {send, recv}) {
        const std::size_t shared = shared_bytes(reinterpret_cast<unsigned long>(buffer));
        check::that(shared > bytes / 4, "{}: {} bytes of what is {} are shared", what, shared,
                    buffer == send ? "sent" : "received");
    }
}

unsigned char* allocate() {
    return static_cast<unsigned char*>(std::malloc(bytes));
}

// Freed, and the next blocks probably lie at the same addresses.
void freed_and_allocated() {
    for (int round = 0; round < 3; ++round) {
        unsigned char *send = allocate(), *recv = allocate();
        exchange_until_shared("malloc", send, recv, round * 10);
        volatile unsigned long sent = reinterpret_cast<unsigned long>(send),
                               received = reinterpret_cast<unsigned long>(recv);
        std::free(send);
        std::free(recv);
        check::that(shared_bytes(sent) == 0 && shared_bytes(received) == 0, "pages are shared after free()");
    }
}

void reallocated() {
    unsigned char *send = allocate(), *recv = allocate();
    exchange_until_shared("before realloc", send, recv, 100);
    send = static_cast<unsigned char*>(std::realloc(send, 3 * bytes));
    recv = static_cast<unsigned char*>(std::realloc(recv, bytes + 100));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        wrong +=
            send[i] != value_at(rank, 100 + uses - 1, i) || recv[i] != value_at(previous, 100 + uses - 1, i);
    check::that(wrong == 0, "realloc: {} wrong bytes", wrong);
    std::memset(send + bytes, 1, 2 * bytes);
    exchange_until_shared("after realloc", send, recv, 110);
    exchange_often("inside of a larger block", send + 2 * bytes - 1000, recv, 120);
    std::free(send);
    std::free(recv);
}

unsigned char* map(void* where = nullptr) {
    return static_cast<unsigned char*>(mmap(where, bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED : 0),
                                            -1, 0));
}

// By calls of the C library, and by system calls that nobody watches.
void mapped_again() {
    unsigned char *send = map(), *recv = map();
    exchange_until_shared("mmap", send, recv, 200);
    munmap(send, bytes);
    check::that(map(send) == send && map(recv) == recv, "mmap at a given address");
    exchange_until_shared("mmap anew", send, recv, 210);
    syscall(SYS_munmap, send, bytes);
    syscall(SYS_mmap, recv, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    check::that(map(send) == send, "mmap at a given address");
    exchange_often("mmap unseen", send, recv, 220);
    unsigned char* const moved = static_cast<unsigned char*>(mremap(send, bytes, 2 * bytes, MREMAP_MAYMOVE));
    check::that(moved != MAP_FAILED, "mremap fails");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        wrong += moved[i] != value_at(rank, 220 + uses - 1, i);
    check::that(wrong == 0, "mremap: {} wrong bytes", wrong);
    std::memset(moved + bytes, 0, bytes);
    exchange_often("mremap", moved, recv, 230);
    exchange_often("behind what was moved", moved + bytes, recv, 240);
    madvise(recv, bytes, MADV_DONTNEED);
    check::that(std::all_of(recv, recv + bytes, [](unsigned char c) { return c == 0; }),
                "MADV_DONTNEED leaves bytes");
    exchange_often("after MADV_DONTNEED", moved, recv, 250);
    munmap(moved, 2 * bytes);
    munmap(recv, bytes);
}

// Parts of one block, at odd places, with a thread that counts in the bytes beside each of them.
void beside_writers() {
    constexpr std::size_t gap = 64;
    auto* const block = static_cast<unsigned char*>(std::malloc(2 * bytes + 3 * gap));
    std::memset(block, 0, 2 * bytes + 3 * gap);
    unsigned char *send = block + gap, *recv = block + 2 * gap + bytes;
    std::atomic<bool> over{false};
    std::atomic<unsigned> lost{0};
    const auto count = [&](unsigned char* place) {
        auto* const mine = reinterpret_cast<volatile unsigned char*>(place);
        unsigned char value = 0;
        while (!over.load(std::memory_order_relaxed)) {
            if (*mine != value) lost.fetch_add(1);
            *mine = ++value;
            std::this_thread::yield();
        }
    };
    std::thread before(count, block + gap - 1), between(count, recv - 1), behind(count, recv + bytes);
    exchange_until_shared("beside writers", send, recv, 300);
    over = true;
    before.join(), between.join(), behind.join();
    check::that(lost == 0, "{} writes beside the buffers were lost", lost.load());
    std::free(block);
}

// Between the blocks of a collective, another thread uses the memory. So it does not move.
void between_blocks() {
    const std::size_t gap = std::size_t{1} << 20, block = bytes / static_cast<std::size_t>(size);
    const std::size_t all = (block + gap) * static_cast<std::size_t>(size);
    auto *const send = static_cast<unsigned char*>(std::calloc(all, 1)), *const recv =
                                                                             static_cast<unsigned char*>(
                                                                                 std::calloc(all, 1));
    std::vector<int> counts(static_cast<std::size_t>(size), static_cast<int>(block)), places;
    for (int i = 0; i < size; ++i)
        places.push_back(static_cast<int>(static_cast<std::size_t>(i) * (block + gap)));
    std::atomic<bool> over{false};
    std::atomic<unsigned> lost{0};
    std::thread beside([&] {
        unsigned char value = 0;
        while (!over.load(std::memory_order_relaxed)) {
            ++value;
            for (std::size_t at = 0; at < all; at += 4096) {
                if (at % (block + gap) < block) continue;
                for (unsigned char* memory : {send, recv}) {
                    auto& mine = *reinterpret_cast<volatile unsigned char*>(memory + at);
                    if (mine != static_cast<unsigned char>(value - 1)) lost.fetch_add(1);
                    mine = value;
                }
            }
            std::this_thread::yield();
        }
    });
    for (int i = 0; i < 2 * uses; ++i) {
        for (int to = 0; to < size; ++to)
            std::memset(send + places[static_cast<std::size_t>(to)], rank * 16 + to + i, block);
        MPI_Request request;
        MPI_Ialltoallv(send, counts.data(), places.data(), MPI_BYTE, recv, counts.data(), places.data(),
                       MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int from = 0; from < size; ++from) {
            const unsigned char* const got = recv + places[static_cast<std::size_t>(from)];
            const auto wanted = static_cast<unsigned char>(from * 16 + rank + i);
            check::that(std::all_of(got, got + block, [&](unsigned char c) { return c == wanted; }),
                        "alltoallv {}: the block of rank {}", i, from);
        }
    }
    over = true;
    beside.join();
    check::that(lost == 0, "{} writes between blocks were lost", lost.load());
    std::free(send);
    std::free(recv);
}

// Its memory is its own, as without offpath.
void forked() {
    unsigned char *send = allocate(), *recv = allocate();
    exchange_until_shared("before fork", send, recv, 400);
    int go[2];
    check::that(pipe(go) == 0, "pipe fails");
    const pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        char word = 0;
        while (read(go[0], &word, 1) > 0) {
        }
        bool good = true;
        for (std::size_t i = 0; i < bytes; ++i)
            good = good && send[i] == value_at(rank, 400 + uses - 1, i);
        std::memset(recv, 9, bytes);
        _exit(good ? 0 : 1);
    }
    exchange("while a child waits", send, recv, 410);
    close(go[0]);
    close(go[1]);
    int status = 1;
    waitpid(child, &status, 0);
    check::that(status == 0, "a child sees what its parent wrote later");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        wrong += recv[i] != value_at(previous, 410, i);
    check::that(wrong == 0, "a child wrote {} bytes of its parent", wrong);
    exchange_often("after fork", send, recv, 420);
    std::free(send);
    std::free(recv);
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, previous = (rank + size - 1) % size;
    expected = argc > 1 && std::string(argv[1]) == "shared" && size > 1;
    freed_and_allocated();
    reallocated();
    mapped_again();
    beside_writers();
    between_blocks();
    if (size > 1) forked();  // last: nothing is shared after a fork
    return check::finish();
}
