// Persistent collectives together with other requests: in arrays with active and inactive requests of all
// kinds, through every request call. Their arrays, datatypes and communicators were freed since they were
// made.
#include <algorithm>
#include <array>

#include "forms.h"

#if !defined(OFFPATH_TEST_HAS_INIT)
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    std::puts("skipped: this MPI has no persistent collectives");
    MPI_Finalize();
    return 77;
}
#else

#define INIT OFFPATH_TEST_INIT

namespace {

constexpr int count = 5000;

// An all-to-all that is started many times with new data.
class Repeated {
  public:
    explicit Repeated(MPI_Comm comm) : ranks_(static_cast<std::size_t>(check::size_of(comm))) {
        send_.resize(ranks_ * count);
        recv_.resize(ranks_ * count);
        expected_.resize(ranks_ * count);
        PMPI_Comm_dup(comm, &reference_);
        INIT(Alltoall)
        (send_.data(), count, MPI_INT, recv_.data(), count, MPI_INT, comm, MPI_INFO_NULL, &request);
    }
    ~Repeated() {
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        PMPI_Comm_free(&reference_);
    }
    Repeated(const Repeated&) = delete;
    Repeated& operator=(const Repeated&) = delete;

    void new_data(int seed) {
        const std::vector<int> data = check::pattern(send_.size(), seed);
        std::copy(data.begin(), data.end(), send_.begin());
        std::fill(recv_.begin(), recv_.end(), -1);
        PMPI_Alltoall(send_.data(), count, MPI_INT, expected_.data(), count, MPI_INT, reference_);
    }
    void check_data(const std::string& what) const {
        check::that(recv_ == expected_, "{}: data", what);
        check::that(request != MPI_REQUEST_NULL, "{}: the request is gone", what);
    }

    MPI_Request request = MPI_REQUEST_NULL;

  private:
    std::size_t ranks_;
    MPI_Comm reference_ = MPI_COMM_NULL;
    std::vector<int> send_, recv_, expected_;
};

bool inactive(MPI_Request request) {
    int flag = 0;
    MPI_Status status;
    MPI_Request_get_status(request, &flag, &status);
    int bytes = -1;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    return flag != 0 && bytes == 0;
}

// `wait` ends all requests of the array.
using Wait = std::function<void(std::vector<MPI_Request>&)>;
void in_arrays(const std::string& what, const Wait& wait) {
    Repeated a(MPI_COMM_WORLD);
    Repeated b(MPI_COMM_WORLD);
    Repeated idle(MPI_COMM_WORLD);
    check::that(inactive(a.request), "{}: a new request is not inactive", what);
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    for (int round = 0; round < 3; ++round) {
        a.new_data(round);
        b.new_data(round + 100);
        MPI_Request both[2] = {a.request, b.request};
        if (round == 1) {
            MPI_Start(&both[0]);
            MPI_Start(&both[1]);
        } else {
            MPI_Startall(2, both);
        }
        check::that(both[0] == a.request && both[1] == b.request, "{}: a start changed the handle", what);
        int in = -1;
        int value = rank * 10 + round;
        MPI_Request received = MPI_REQUEST_NULL;
        MPI_Request sent = MPI_REQUEST_NULL;
        MPI_Irecv(&in, 1, MPI_INT, (rank + ranks - 1) % ranks, round, MPI_COMM_WORLD, &received);
        MPI_Isend(&value, 1, MPI_INT, (rank + 1) % ranks, round, MPI_COMM_WORLD, &sent);
        std::vector<MPI_Request> requests = {received,     a.request, MPI_REQUEST_NULL,
                                             idle.request, b.request, sent};
        wait(requests);
        check::that(requests[0] == MPI_REQUEST_NULL && requests[5] == MPI_REQUEST_NULL &&
                        requests[1] == a.request && requests[3] == idle.request && requests[4] == b.request,
                    "{}: handles after round {}", what, round);
        check::that(in == (rank + ranks - 1) % ranks * 10 + round, "{}: message {}", what, round);
        a.check_data(fmt::format("{}, first, round {}", what, round));
        b.check_data(fmt::format("{}, second, round {}", what, round));
    }
}

void every_request_call() {
    in_arrays("MPI_Wait", [](std::vector<MPI_Request>& r) {
        for (MPI_Request& request : r)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    in_arrays("MPI_Test", [](std::vector<MPI_Request>& r) {
        for (MPI_Request& request : r) {
            for (int flag = 0; flag == 0;)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
    });
    in_arrays("MPI_Waitall", [](std::vector<MPI_Request>& r) {
        std::vector<MPI_Status> statuses(r.size());
        MPI_Waitall(static_cast<int>(r.size()), r.data(), statuses.data());
    });
    in_arrays("MPI_Testall", [](std::vector<MPI_Request>& r) {
        for (int flag = 0; flag == 0;)
            MPI_Testall(static_cast<int>(r.size()), r.data(), &flag, MPI_STATUSES_IGNORE);
    });
    const auto one_by_one = [](const char* name, const auto& next) {
        in_arrays(name, [&](std::vector<MPI_Request>& r) {
            std::vector<int> seen(r.size(), 0);
            for (int index = next(r); index != MPI_UNDEFINED; index = next(r))
                ++seen[static_cast<std::size_t>(index)];
            check::that(seen == std::vector<int>{1, 1, 0, 0, 1, 1}, "{}: {}", name, fmt::join(seen, ","));
        });
    };
    one_by_one("MPI_Waitany", [](std::vector<MPI_Request>& r) {
        int index = 0;
        MPI_Waitany(static_cast<int>(r.size()), r.data(), &index, MPI_STATUS_IGNORE);
        return index;
    });
    one_by_one("MPI_Testany", [](std::vector<MPI_Request>& r) {
        int index = 0;
        for (int flag = 0; flag == 0;)
            MPI_Testany(static_cast<int>(r.size()), r.data(), &index, &flag, MPI_STATUS_IGNORE);
        return index;
    });
    const auto some_by_some = [](const char* name, auto call) {
        in_arrays(name, [&](std::vector<MPI_Request>& r) {
            std::vector<int> seen(r.size(), 0), indices(r.size());
            for (int done = 0; done != MPI_UNDEFINED;) {
                call(static_cast<int>(r.size()), r.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
                for (int i = 0; i < done; ++i)
                    ++seen[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])];
            }
            check::that(seen == std::vector<int>{1, 1, 0, 0, 1, 1}, "{}: {}", name, fmt::join(seen, ","));
        });
    };
    some_by_some("MPI_Waitsome", MPI_Waitsome);
    some_by_some("MPI_Testsome", MPI_Testsome);
}

void status_while_active() {
    Repeated a(MPI_COMM_WORLD);
    a.new_data(7);
    MPI_Start(&a.request);
    for (int flag = 0; flag == 0;)
        MPI_Request_get_status(a.request, &flag, MPI_STATUS_IGNORE);
    a.check_data("MPI_Request_get_status");
    MPI_Wait(&a.request, MPI_STATUS_IGNORE);
    check::that(inactive(a.request), "inactive after the wait");
}

// Before the first start, arrays are overwritten, and the datatype and the communicator are freed.
void nothing_left_but_the_request() {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const auto n = static_cast<std::size_t>(ranks);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank_of(MPI_COMM_WORLD), &comm);
    MPI_Comm reference = MPI_COMM_NULL;
    PMPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank_of(MPI_COMM_WORLD), &reference);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Datatype kept = MPI_DATATYPE_NULL;
    PMPI_Type_dup(type, &kept);
    const int span = 10;
    std::vector<int> counts, displs;
    int place = 0;
    for (int r = 0; r < ranks; ++r) {
        const int units = r % 2 == 0 ? 300 : 3;
        counts.push_back(units);
        displs.push_back(place);
        place += units + 1;
    }
    const std::vector<int> old_counts = counts, old_displs = displs;
    const std::vector<int> mine = check::pattern(static_cast<std::size_t>(320 * span), 3);
    const std::vector<int> blank = check::pattern(static_cast<std::size_t>((place + 1) * span), 4);
    std::vector<int> recv = blank;
    std::vector<int> alltoall_send = check::pattern(static_cast<std::size_t>((320 * ranks) * span), 5);
    std::vector<int> to_all(n), from_all(n), gaps(n);
    const int me = check::rank_of(comm);
    for (int r = 0; r < ranks; ++r) {
        const auto i = static_cast<std::size_t>(r);
        to_all[i] = (me + r) % 2 == 0 ? 2 : 200;
        from_all[i] = (me + r) % 2 == 0 ? 2 : 200;
        gaps[i] = r * 201;
    }
    const std::vector<int> old_gaps = gaps, old_to = to_all;
    std::vector<int> all_recv(static_cast<std::size_t>(ranks * 202 * span), -1);
    MPI_Request requests[2];
    INIT(Allgatherv)
    (mine.data(), counts[static_cast<std::size_t>(me)], type, recv.data(), counts.data(), displs.data(), type,
     comm, MPI_INFO_NULL, &requests[0]);
    INIT(Alltoallv)
    (alltoall_send.data(), to_all.data(), gaps.data(), type, all_recv.data(), from_all.data(), gaps.data(),
     type, comm, MPI_INFO_NULL, &requests[1]);
    std::vector<int> expected = blank;
    PMPI_Allgatherv(mine.data(), old_counts[static_cast<std::size_t>(me)], kept, expected.data(),
                    old_counts.data(), old_displs.data(), kept, reference);
    std::vector<int> all_expected(all_recv.size(), -1);
    PMPI_Alltoallv(alltoall_send.data(), old_to.data(), old_gaps.data(), kept, all_expected.data(),
                   old_to.data(), old_gaps.data(), kept, reference);
    MPI_Type_free(&type);
    for (int round = 0; round < 3; ++round) {
        std::copy(blank.begin(), blank.end(), recv.begin());
        std::fill(all_recv.begin(), all_recv.end(), -1);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check::that(recv == expected, "allgatherv of a freed datatype, start {}", round);
        check::that(all_recv == all_expected, "alltoallv of a freed datatype, start {}", round);
        // Open MPI's own operations need both as long as the request lives, and with 1 rank those are used.
        if (ranks > 1 && round == 0) MPI_Comm_free(&comm);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    PMPI_Comm_free(&reference);
    PMPI_Type_free(&kept);
}

// The host's persistent messages and offloaded operations are started together.
void with_the_hosts_own() {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    Repeated a(MPI_COMM_WORLD);
    int in = -1;
    int out = 0;
    MPI_Request requests[3] = {a.request};
    MPI_Recv_init(&in, 1, MPI_INT, (rank + ranks - 1) % ranks, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &requests[2]);
    for (int round = 0; round < 3; ++round) {
        a.new_data(50 + round);
        out = rank + 1000 * round;
        MPI_Startall(3, requests);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        a.check_data("with messages");
        check::that(in == (rank + ranks - 1) % ranks + 1000 * round, "persistent message {}", round);
    }
    MPI_Request_free(&requests[1]);
    MPI_Request_free(&requests[2]);
}

// Persistent operations must be made in one order on all ranks, but may be started in any. Other operations
// of the communicator may come between.
void started_in_any_order() {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<int> word(count), vector_in(n * count, -1), all_in(n, -1);
    // Some pairs go to the device and some to the host. One size is that of the second request.
    std::vector<int> counts(n), gaps(n);
    for (int r = 0; r < ranks; ++r) {
        counts[static_cast<std::size_t>(r)] = (rank + r) % 2 == 0 ? 7 : count;
        gaps[static_cast<std::size_t>(r)] = r * count;
    }
    std::vector<int> vector_out(n * count), second_in(n * count, -1), second_out(n * count);
    std::array<MPI_Request, 4> requests{};
    INIT(Bcast)(word.data(), count, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    INIT(Alltoallv)
    (vector_out.data(), counts.data(), gaps.data(), MPI_INT, vector_in.data(), counts.data(), gaps.data(),
     MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    INIT(Alltoallv)
    (second_out.data(), counts.data(), gaps.data(), MPI_INT, second_in.data(), counts.data(), gaps.data(),
     MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 6; ++round) {
        std::fill(word.begin(), word.end(), rank == 0 ? round : -1);
        std::fill(vector_out.begin(), vector_out.end(), 100 * rank + round);
        std::fill(second_out.begin(), second_out.end(), 100 * rank + round + 50);
        std::array<int, 3> order = {0, 1, 2};
        for (int i = 0; i < (rank * 5 + round) % 6; ++i)
            std::next_permutation(order.begin(), order.end());
        for (const int which : order)
            MPI_Start(&requests[static_cast<std::size_t>(which)]);
        MPI_Iallgather(&rank, 1, MPI_INT, all_in.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
        bool good = word.front() == round && word.back() == round;
        for (int r = 0; r < ranks; ++r) {
            const auto i = static_cast<std::size_t>(r);
            const auto last = static_cast<std::size_t>(gaps[i] + counts[i] - 1);
            good = good && all_in[i] == r && vector_in[last] == 100 * r + round &&
                   second_in[last] == 100 * r + round + 50;
        }
        check::that(good, "started in any order, round {}", round);
    }
    for (int i = 0; i < 3; ++i)
        MPI_Request_free(&requests[static_cast<std::size_t>(i)]);
}

// The host's MPI may reuse the handle of an offloaded request. MPICH 4.0 keeps some properties of the old
// one.
void a_hosts_collective_after_ours() {
    const auto first = [](void* in, void* inout, int* length, MPI_Datatype*) {
        std::copy_n(static_cast<int*>(in), *length, static_cast<int*>(inout));
    };
    for (int i = 0; i < 3; ++i) {
        Repeated ours(MPI_COMM_WORLD);
    }
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(first, 0, &op);
    int mine = check::rank_of(MPI_COMM_WORLD) + 1;
    int result = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    INIT(Scan)(&mine, &result, 1, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(result == 1, "a scan of the host's has {}", result);
    MPI_Request_free(&request);
    MPI_Op_free(&op);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    a_hosts_collective_after_ours();
    every_request_call();
    status_while_active();
    nothing_left_but_the_request();
    with_the_hosts_own();
    started_in_any_order();
    // One is never freed. MPI_Finalize has to cope with that.
    auto* left = new Repeated(MPI_COMM_WORLD);
    left->new_data(1);
    MPI_Start(&left->request);
    MPI_Wait(&left->request, MPI_STATUS_IGNORE);
    left->check_data("not freed");
    return check::finish();
}

#endif
