// A daemon dies while collectives of all kinds are outstanding on some ranks and not yet started on others.
// All of them end with right results: they run again on the host's MPI. Errors are fatal, as is MPI's
// default. Two or more ranks (several_daemons.sh). Arguments:
//   who starts before the loss: "others" (all but rank 0) or "last" (the last rank only, which is also the
//   root
//     of the collectives that only a root waits for)
//   form: "nonblocking", "blocking", "persistent", or "short": reductions of fewer elements than ranks
//   whose daemon dies: "first" or "last"
//   "stop": the daemon is not killed but stopped. When the collectives are over it continues, and must not
//   touch
//     their buffers.
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int block = 3000;  // ints
int rank, ranks, last_rank;
std::string_view form;

int persistent_allreduce(const void* send, void* recv, int count, MPI_Comm comm, MPI_Request* request) {
#if defined(OPEN_MPI)
    return MPIX_Allreduce_init(send, recv, count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
#else
    return MPI_Allreduce_init(send, recv, count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
#endif
}
int persistent_alltoall(const void* send, void* recv, MPI_Comm comm, MPI_Request* request) {
#if defined(OPEN_MPI)
    return MPIX_Alltoall_init(send, block, MPI_INT, recv, block, MPI_INT, comm, MPI_INFO_NULL, request);
#else
    return MPI_Alltoall_init(send, block, MPI_INT, recv, block, MPI_INT, comm, MPI_INFO_NULL, request);
#endif
}

// What rank `from` sends to rank `to`, at `i`.
int value(int serial, int from, int to, int i) {
    return serial * 1'000'003 + from * 1009 + to * 31 + i;
}

// A collective with its buffers. `expected` is what arrives at `i` of the receive buffer; -1: nothing.
struct Collective {
    const char* name;
    std::size_t sends, receives;  // blocks
    std::function<int(const int* send, int* recv, MPI_Request* request)> start;
    std::function<int(int serial, int at_block, int i)> expected;
    std::vector<int> send = {}, recv = {};
    MPI_Request request = MPI_REQUEST_NULL;

    void fill(int serial) {
        send.resize(sends * block);
        recv.assign(receives * block, -1);
        for (std::size_t at = 0; at < send.size(); ++at)
            send[at] = value(serial, rank, static_cast<int>(at) / block, static_cast<int>(at) % block);
    }
    void verify(int serial) const {
        for (std::size_t at = 0; at < recv.size(); ++at) {
            const int wanted = expected(serial, static_cast<int>(at) / block, static_cast<int>(at) % block);
            if (recv[at] == wanted) continue;
            check::that(false, "{}, round {}: {} is {} instead of {}", name, serial, at, recv[at], wanted);
            return;
        }
    }
};

int sum_up_to(int serial, int end, int to, int i) {
    int sum = 0;
    for (int from = 0; from < end; ++from)
        sum += value(serial, from, to, i);
    return sum;
}

class Arrays {
  public:
    Arrays() {
        for (int peer = 0; peer < ranks; ++peer) {
            counts.push_back(block - peer * rank % 7);
            displacements.push_back(peer * block);
        }
    }
    std::vector<int> counts, displacements;
};

std::vector<Collective> needing_all(MPI_Comm comm, const Arrays& arrays, MPI_Datatype pairs) {
    const auto n = static_cast<std::size_t>(ranks);
    const auto from_all = [](int serial, int from, int i) { return value(serial, from, rank, i); };
    const auto same_from_all = [](int serial, int from, int i) { return value(serial, from, 0, i); };
    const auto sum_of_all = [](int serial, int at, int i) { return sum_up_to(serial, ranks, at, i); };
    const auto from_first = [](int serial, int, int i) { return value(serial, 0, 0, i); };
    return {
        {"MPI_Ialltoall", n, n,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Ialltoall(send, block, MPI_INT, recv, block, MPI_INT, comm, request);
         },
         from_all},
        {"MPI_Ialltoall of a type with gaps", n, n,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Ialltoall(send, block, MPI_INT, recv, 1, pairs, comm, request);
         },
         // The type puts the halves of a block in each other's place.
         [=](int serial, int from, int i) { return from_all(serial, from, (i + block / 2) % block); }},
        {"MPI_Ialltoallv", n, n,
         [=, &arrays](const int* send, int* recv, MPI_Request* request) {
             return MPI_Ialltoallv(send, arrays.counts.data(), arrays.displacements.data(), MPI_INT, recv,
                                   arrays.counts.data(), arrays.displacements.data(), MPI_INT, comm, request);
         },
         [=, &arrays](int serial, int from, int i) {
             return i < arrays.counts[static_cast<std::size_t>(from)] ? from_all(serial, from, i) : -1;
         }},
        {"MPI_Iallgather", 1, n,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iallgather(send, block, MPI_INT, recv, block, MPI_INT, comm, request);
         },
         same_from_all},
        {"MPI_Iallreduce", n, n,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iallreduce(send, recv, ranks * block, MPI_INT, MPI_SUM, comm, request);
         },
         sum_of_all},
        // The device overwrites the operands, of which there are copies.
        {"MPI_Iallreduce in place", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             std::copy_n(send, block, recv);
             return MPI_Iallreduce(MPI_IN_PLACE, recv, block, MPI_INT, MPI_SUM, comm, request);
         },
         sum_of_all},
        {"MPI_Iscan in place", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             std::copy_n(send, block, recv);
             return MPI_Iscan(MPI_IN_PLACE, recv, block, MPI_INT, MPI_SUM, comm, request);
         },
         [](int serial, int, int i) { return sum_up_to(serial, rank + 1, 0, i); }},
        {"MPI_Ireduce_scatter_block", n, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Ireduce_scatter_block(send, recv, block, MPI_INT, MPI_SUM, comm, request);
         },
         [=](int serial, int, int i) { return sum_of_all(serial, rank, i); }},
        {"MPI_Iscan", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iscan(send, recv, block, MPI_INT, MPI_SUM, comm, request);
         },
         [](int serial, int, int i) { return sum_up_to(serial, rank + 1, 0, i); }},
        {"MPI_Iexscan", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iexscan(send, recv, block, MPI_INT, MPI_SUM, comm, request);
         },
         [](int serial, int, int i) { return rank > 0 ? sum_up_to(serial, rank, 0, i) : -1; }},
        {"MPI_Ibcast", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             if (rank == 0) std::copy_n(send, block, recv);
             return MPI_Ibcast(recv, block, MPI_INT, 0, comm, request);
         },
         from_first},
        {"MPI_Iscatter", n, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iscatter(send, block, MPI_INT, recv, block, MPI_INT, 0, comm, request);
         },
         [](int serial, int, int i) { return value(serial, 0, rank, i); }},
        {"MPI_Ibarrier", 0, 0,
         [=](const int*, int*, MPI_Request* request) { return MPI_Ibarrier(comm, request); }, same_from_all},
    };
}

// Only the last rank waits for the others.
std::vector<Collective> needed_by_last(MPI_Comm comm, const Arrays& arrays) {
    const auto n = static_cast<std::size_t>(rank == last_rank ? ranks : 0);
    const auto same_from_all = [](int serial, int from, int i) { return value(serial, from, 0, i); };
    return {
        {"MPI_Igather", 1, n,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Igather(send, block, MPI_INT, recv, block, MPI_INT, last_rank, comm, request);
         },
         same_from_all},
        {"MPI_Igatherv", 1, n,
         [=, &arrays](const int* send, int* recv, MPI_Request* request) {
             const int mine = block - rank * last_rank % 7;
             return MPI_Igatherv(send, mine, MPI_INT, recv, arrays.counts.data(), arrays.displacements.data(),
                                 MPI_INT, last_rank, comm, request);
         },
         [=, &arrays](int serial, int from, int i) {
             return i < arrays.counts[static_cast<std::size_t>(from)] ? same_from_all(serial, from, i) : -1;
         }},
        {"MPI_Ireduce", 1, rank == last_rank ? 1U : 0U,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Ireduce(send, recv, block, MPI_INT, MPI_SUM, last_rank, comm, request);
         },
         [](int serial, int, int i) { return sum_up_to(serial, ranks, 0, i); }},
    };
}

std::vector<Collective> blocking(MPI_Comm comm) {
    const auto n = static_cast<std::size_t>(ranks);
    return {{"MPI_Alltoall", n, n,
             [=](const int* send, int* recv, MPI_Request*) {
                 return MPI_Alltoall(send, block, MPI_INT, recv, block, MPI_INT, comm);
             },
             [](int serial, int from, int i) { return value(serial, from, rank, i); }}};
}

// Most ranks combine nothing, and have a result all the same.
std::vector<Collective> of_one_element(MPI_Comm comm, bool by_last) {
    const auto none_behind = [](auto first) {
        return [=](int serial, int, int i) { return i == 0 ? first(serial) : -1; };
    };
    const auto sum_of_all = [](int serial) { return sum_up_to(serial, ranks, 0, 0); };
    std::vector<Collective> all = {
        {"MPI_Iallreduce of one", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iallreduce(send, recv, 1, MPI_INT, MPI_SUM, comm, request);
         },
         none_behind(sum_of_all)},
        {"MPI_Iscan of one", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iscan(send, recv, 1, MPI_INT, MPI_SUM, comm, request);
         },
         none_behind([](int serial) { return sum_up_to(serial, rank + 1, 0, 0); })},
        {"MPI_Iexscan of one", 1, 1,
         [=](const int* send, int* recv, MPI_Request* request) {
             return MPI_Iexscan(send, recv, 1, MPI_INT, MPI_SUM, comm, request);
         },
         none_behind([](int serial) { return rank > 0 ? sum_up_to(serial, rank, 0, 0) : -1; })}};
    if (by_last)
        all.push_back({"MPI_Ireduce of one", 1, rank == last_rank ? 1U : 0U,
                       [=](const int* send, int* recv, MPI_Request* request) {
                           return MPI_Ireduce(send, recv, 1, MPI_INT, MPI_SUM, last_rank, comm, request);
                       },
                       none_behind(sum_of_all)});
    return all;
}

// Their starts are started operations, too.
std::vector<Collective> persistent(MPI_Comm comm) {
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<Collective> all = {{"a persistent all-to-all",
                                    n,
                                    n,
                                    {},
                                    [](int serial, int from, int i) { return value(serial, from, rank, i); }},
                                   {"a persistent sum", n, n, {}, [](int serial, int at, int i) {
                                        return sum_up_to(serial, ranks, at, i);
                                    }}};
    for (Collective& one : all)
        one.fill(0);
    persistent_alltoall(all[0].send.data(), all[0].recv.data(), comm, &all[0].request);
    persistent_allreduce(all[1].send.data(), all[1].recv.data(), ranks * block, comm, &all[1].request);
    for (Collective& one : all)
        one.start = [](const int*, int*, MPI_Request* request) { return MPI_Start(request); };
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    last_rank = ranks - 1;
    const bool only_last = argc > 1 && std::string_view(argv[1]) == "last";
    form = argc > 2 ? argv[2] : "nonblocking";
    const int victim = argc > 3 && std::string_view(argv[3]) == "first" ? 0 : last_rank;
    const bool stops = argc > 4 && std::string_view(argv[4]) == "stop";
    const bool starts_early = only_last ? rank == last_rank : rank != 0;

    MPI_Datatype halves;  // of a block, the second one first
    const int lengths[] = {block / 2, block / 2}, places[] = {block / 2, 0};
    MPI_Type_indexed(2, lengths, places, MPI_INT, &halves);
    MPI_Type_commit(&halves);
    {
        const Arrays arrays;
        std::vector<Collective> all = form == "blocking"     ? blocking(MPI_COMM_WORLD)
                                      : form == "persistent" ? persistent(MPI_COMM_WORLD)
                                      : form == "short"      ? of_one_element(MPI_COMM_WORLD, only_last)
                                                             : needing_all(MPI_COMM_WORLD, arrays, halves);
        if (only_last && form != "short")
            for (Collective& one : needed_by_last(MPI_COMM_WORLD, arrays))
                all.push_back(std::move(one));
        const auto start = [&] {
            for (Collective& one : all)
                check::that(one.start(one.send.data(), one.recv.data(), &one.request) == MPI_SUCCESS,
                            "{} could not be started", one.name);
        };
        constexpr int round_of_loss = 3;
        for (int serial = 1; serial <= 8; ++serial) {
            const bool lost = serial == round_of_loss;
            for (Collective& one : all)
                one.fill(serial);
            PMPI_Barrier(MPI_COMM_WORLD);
            if (!lost || starts_early) {
                // A rank whose daemon dies in a blocking call has to let another thread kill it.
                std::thread killer;
                if (lost && form == "blocking" && rank == victim)
                    killer = std::thread([stops] {
                        std::this_thread::sleep_for(std::chrono::milliseconds(300));
                        check::kill_daemon(stops ? SIGSTOP : SIGKILL);
                    });
                start();
                if (killer.joinable()) killer.join();
            }
            if (lost && form != "blocking") PMPI_Barrier(MPI_COMM_WORLD);
            if (lost && rank == victim && (form != "blocking" || !starts_early)) {
                // Daemons that have never answered each other's questions are not given up.
                std::this_thread::sleep_for(std::chrono::milliseconds(stops ? 2500 : 300));
                check::kill_daemon(stops ? SIGSTOP : SIGKILL);
            }
            if (lost && form != "blocking") PMPI_Barrier(MPI_COMM_WORLD);
            if (lost && !starts_early) {
                // Until the daemon has died beside a blocking call.
                if (form == "blocking" && rank != victim)
                    std::this_thread::sleep_for(std::chrono::seconds(1));
                start();
            }
            for (Collective& one : all)
                check::that(MPI_Wait(&one.request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "{} failed", one.name);
            for (const Collective& one : all)
                one.verify(serial);
            if (!lost || !stops) continue;
            for (Collective& one : all)
                std::fill(one.recv.begin(), one.recv.end(), -7);
            if (rank == victim) check::kill_daemon(SIGCONT);
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            for (const Collective& one : all)
                check::that(std::all_of(one.recv.begin(), one.recv.end(), [](int at) { return at == -7; }),
                            "{}: the daemon has written late", one.name);
        }
        if (form == "persistent")
            for (Collective& one : all)
                MPI_Request_free(&one.request);
    }
    MPI_Type_free(&halves);
    return check::finish();
}
