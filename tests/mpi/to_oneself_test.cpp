// Messages of a rank to itself, in all forms and sizes. They are the host's MPI's, so the device carries none
// of them. With the argument "mixed", receives with wildcards get them among messages of the next rank, and
// keep the order of each.
#include <mpi.h>

#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "check.h"

namespace {

constexpr int sizes[] = {0, 8, 61, 4096, 300000};

std::vector<int> message(int size, int seed) {
    std::vector<int> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), seed);
    return numbers;
}

struct Place {
    MPI_Comm comm;
    int rank;
    const char* name;
};

void expect(const Place& at, int size, int seed, const std::vector<int>& got, const char* form) {
    check::that(got == message(size, seed), "{}: {} of {} numbers: wrong data", at.name, form, size);
}

void receives(const Place& at, int size) {
    const std::vector<int> sent = message(size, 1);
    std::vector<int> got(sent.size(), -1);
    MPI_Request requests[2];
    MPI_Irecv(got.data(), size, MPI_INT, at.rank, 1, at.comm, &requests[0]);
    MPI_Send(sent.data(), size, MPI_INT, at.rank, 1, at.comm);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    expect(at, size, 1, got, "a receive before the send");
    std::fill(got.begin(), got.end(), -1);
    MPI_Isend(sent.data(), size, MPI_INT, at.rank, 2, at.comm, &requests[0]);
    MPI_Recv(got.data(), size, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, at.comm, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    expect(at, size, 1, got, "a receive with wildcards");
}

void probes(const Place& at, int size, int source) {
    const std::vector<int> sent = message(size, 2);
    std::vector<int> got(sent.size(), -1);
    MPI_Request requests[2];
    MPI_Message matched = MPI_MESSAGE_NULL;
    MPI_Status status;
    int count = -1;
    MPI_Issend(sent.data(), size, MPI_INT, at.rank, 3, at.comm, &requests[0]);
    MPI_Probe(source, 3, at.comm, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check::that(count == size, "{}: a probe of {} numbers says {}", at.name, size, count);
    MPI_Mprobe(source, 3, at.comm, &matched, MPI_STATUS_IGNORE);
    MPI_Imrecv(got.data(), size, MPI_INT, &matched, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(at, size, 2, got, "a matched receive");
}

void exchanges(const Place& at, int size) {
    std::vector<int> sent = message(size, 3), got(sent.size(), -1);
    MPI_Sendrecv(sent.data(), size, MPI_INT, at.rank, 4, got.data(), size, MPI_INT, at.rank, 4, at.comm,
                 MPI_STATUS_IGNORE);
    expect(at, size, 3, got, "an exchange");
    MPI_Sendrecv_replace(sent.data(), size, MPI_INT, at.rank, 5, MPI_ANY_SOURCE, 5, at.comm,
                         MPI_STATUS_IGNORE);
    expect(at, size, 3, sent, "an exchange in place");
}

void persistent(const Place& at, int size) {
    const std::vector<int> sent = message(size, 4);
    std::vector<int> got(sent.size(), -1);
    MPI_Request requests[2];
    MPI_Send_init(sent.data(), size, MPI_INT, at.rank, 6, at.comm, &requests[0]);
    MPI_Recv_init(got.data(), size, MPI_INT, at.rank, 6, at.comm, &requests[1]);
    for (int round = 0; round < 2; ++round) {
        std::fill(got.begin(), got.end(), -1);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(at, size, 4, got, "a persistent message");
    }
    for (MPI_Request& request : requests)
        MPI_Request_free(&request);
}

void alone(const Place& at) {
    for (const int size : sizes) {
        receives(at, size);
        for (const int source : {at.rank, MPI_ANY_SOURCE})
            probes(at, size, source);
        exchanges(at, size);
        persistent(at, size);
    }
}

// Receives with wildcards: the messages of each source come in their order.
void among_others() {
    constexpr int messages = 40;
    const int rank = check::rank_of(MPI_COMM_WORLD), ranks = check::size_of(MPI_COMM_WORLD);
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    std::vector<std::vector<int>> sent, got(2 * messages);
    std::vector<MPI_Request> sends(2 * messages), receives(2 * messages);
    for (int i = 0; i < messages; ++i)
        sent.push_back(message(sizes[1 + i % 4] + 1, 1000 * i));
    for (std::size_t i = 0; i < got.size(); ++i) {
        got[i].resize(300001);
        MPI_Irecv(got[i].data(), 300001, MPI_INT, MPI_ANY_SOURCE, i % 2 == 0 ? 7 : MPI_ANY_TAG,
                  MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = 0; i < messages; ++i)
        for (const int to : {rank, next})
            MPI_Isend(sent[static_cast<std::size_t>(i)].data(),
                      static_cast<int>(sent[static_cast<std::size_t>(i)].size()), MPI_INT, to, 7,
                      MPI_COMM_WORLD, &sends[static_cast<std::size_t>(2 * i + (to == rank ? 0 : 1))]);
    std::vector<MPI_Status> statuses(receives.size());
    MPI_Waitall(2 * messages, receives.data(), statuses.data());
    MPI_Waitall(2 * messages, sends.data(), MPI_STATUSES_IGNORE);
    int of_self = 0, of_previous = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const bool own = statuses[i].MPI_SOURCE == rank;
        check::that(own || statuses[i].MPI_SOURCE == previous, "a message of {}", statuses[i].MPI_SOURCE);
        const int number = own ? of_self++ : of_previous++;
        const std::vector<int>& wanted = sent[static_cast<std::size_t>(number % messages)];
        check::that(std::memcmp(got[i].data(), wanted.data(), wanted.size() * sizeof(int)) == 0,
                    "receive {}: not message {} of {}", i, number, statuses[i].MPI_SOURCE);
    }
    check::that(of_self == messages, "{} messages of the rank itself", of_self);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bool mixed = argc > 1 && std::string_view(argv[1]) == "mixed";
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank_of(MPI_COMM_WORLD), &reversed);
    for (const Place& at :
         {Place{MPI_COMM_WORLD, check::rank_of(MPI_COMM_WORLD), "world"},
          Place{reversed, check::rank_of(reversed), "reversed"}, Place{MPI_COMM_SELF, 0, "self"}})
        alone(at);
    if (mixed) among_others();
    MPI_Comm_free(&reversed);
    return check::finish();
}
