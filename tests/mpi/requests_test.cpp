// Every request call over arrays that mix offloaded operations, messages of the host's MPI, null requests and
// inactive persistent ones; with many operations in flight, of many sizes.
#include <functional>

#include "check.h"

namespace {

using Requests = std::vector<MPI_Request>;

// A mixture of operations. Their data are checked at the end.
class Mixture {
  public:
    explicit Mixture(int seed) {
        const int ranks = check::size_of(MPI_COMM_WORLD);
        const int rank = check::rank_of(MPI_COMM_WORLD);
        for (int i = 0; i < operations; ++i) {
            const auto n = static_cast<std::size_t>(sizes[static_cast<std::size_t>(i) % sizes.size()]);
            const int count = static_cast<int>(n);
            const auto all = n * static_cast<std::size_t>(ranks);
            Part& part = parts_.emplace_back();
            part.send = check::pattern(all, seed + i);
            part.recv.assign(all, -1);
            part.expected.assign(all, -1);
            int* send = part.send.data();
            int* recv = part.recv.data();
            int* expected = part.expected.data();
            MPI_Request request = MPI_REQUEST_NULL;
            switch (i % 6) {
                case 0:
                    PMPI_Alltoall(send, count, MPI_INT, expected, count, MPI_INT, MPI_COMM_WORLD);
                    MPI_Ialltoall(send, count, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD, &request);
                    break;
                case 1:
                    PMPI_Allgather(send, count, MPI_INT, expected, count, MPI_INT, MPI_COMM_WORLD);
                    MPI_Iallgather(send, count, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD, &request);
                    break;
                case 2: {  // the host's
                    const int next = (rank + 1) % ranks;
                    const int previous = (rank + ranks - 1) % ranks;
                    PMPI_Sendrecv(send, count, MPI_INT, next, 1, expected, count, MPI_INT, previous, 1,
                                  MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    MPI_Irecv(recv, count, MPI_INT, previous, 2 + i, MPI_COMM_WORLD, &request);
                    MPI_Request sent = MPI_REQUEST_NULL;
                    MPI_Isend(send, count, MPI_INT, next, 2 + i, MPI_COMM_WORLD, &sent);
                    requests.push_back(sent);
                    break;
                }
                case 3: {
                    const int root = i % ranks;
                    part.recv = part.expected = part.send;
                    PMPI_Bcast(part.expected.data(), count, MPI_INT, root, MPI_COMM_WORLD);
                    MPI_Ibcast(part.recv.data(), count, MPI_INT, root, MPI_COMM_WORLD, &request);
                    break;
                }
                case 4: {  // large to the next rank, small to the others
                    std::vector<int> counts(static_cast<std::size_t>(ranks), 1), from(counts), places, gaps;
                    counts[static_cast<std::size_t>((rank + 1) % ranks)] = count;
                    from[static_cast<std::size_t>((rank + ranks - 1) % ranks)] = count;
                    for (int r = 0; r < ranks; ++r) {
                        places.push_back(r * count);
                        gaps.push_back((ranks - 1 - r) * count);
                    }
                    PMPI_Alltoallv(send, counts.data(), places.data(), MPI_INT, expected, from.data(),
                                   gaps.data(), MPI_INT, MPI_COMM_WORLD);
                    MPI_Ialltoallv(send, counts.data(), places.data(), MPI_INT, recv, from.data(),
                                   gaps.data(), MPI_INT, MPI_COMM_WORLD, &request);
                    break;
                }
                default:
                    part.recv = part.expected;
                    break;  // a null request
            }
            requests.push_back(request);
        }
        check_persistent();
    }
    ~Mixture() {
        if (persistent_ != MPI_REQUEST_NULL) PMPI_Request_free(&persistent_);
    }
    Mixture(const Mixture&) = delete;
    Mixture& operator=(const Mixture&) = delete;

    // Called after `form` of waiting has ended everything.
    void check_all(const char* form) {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            check::that(requests[i] == MPI_REQUEST_NULL || requests[i] == persistent_,
                        "{}: request {} is left", form, i);
        }
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            check::that(parts_[i].recv == parts_[i].expected, "{}: data of operation {}", form, i);
        }
    }
    int count() const { return static_cast<int>(requests.size()); }

    Requests requests;

  private:
    static constexpr int operations = 40;
    static inline const std::vector<int> sizes = {1, 200, 30000, 5, 4000, 17, 1000};
    struct Part {
        std::vector<int> send, recv, expected;
    };
    void check_persistent() {
        PMPI_Send_init(nullptr, 0, MPI_INT, check::rank_of(MPI_COMM_WORLD), 0, MPI_COMM_WORLD, &persistent_);
        requests.push_back(persistent_);  // inactive: counts as done
    }
    std::vector<Part> parts_;
    MPI_Request persistent_ = MPI_REQUEST_NULL;
};

void with(const char* form, int seed, const std::function<void(Mixture&)>& wait) {
    Mixture mixture(seed);
    wait(mixture);
    mixture.check_all(form);
}

void wait_forms() {
    with("MPI_Wait", 1, [](Mixture& m) {
        for (MPI_Request& request : m.requests)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    with("MPI_Wait backwards", 2, [](Mixture& m) {
        for (auto request = m.requests.rbegin(); request != m.requests.rend(); ++request) {
            MPI_Status status;
            MPI_Wait(&*request, &status);
        }
    });
    with("MPI_Waitall", 3,
         [](Mixture& m) { MPI_Waitall(m.count(), m.requests.data(), MPI_STATUSES_IGNORE); });
    with("MPI_Waitall with statuses", 4, [](Mixture& m) {
        std::vector<MPI_Status> statuses(m.requests.size());
        const int result = MPI_Waitall(m.count(), m.requests.data(), statuses.data());
        check::that(result == MPI_SUCCESS, "MPI_Waitall gave {}", result);
        int cancelled = 0;
        for (const MPI_Status& status : statuses) {
            PMPI_Test_cancelled(&status, &cancelled);
            check::that(cancelled == 0, "a status says cancelled");
        }
    });
    with("MPI_Waitany", 5, [](Mixture& m) {
        int index = 0;
        int calls = 0;
        while (MPI_Waitany(m.count(), m.requests.data(), &index, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
               index != MPI_UNDEFINED)
            ++calls;
        check::that(calls <= m.count(), "MPI_Waitany gave {} completions of {}", calls, m.count());
    });
    with("MPI_Waitsome", 6, [](Mixture& m) {
        int done = 0;
        std::vector<int> indices(m.requests.size());
        std::vector<MPI_Status> statuses(m.requests.size());
        do {
            MPI_Waitsome(m.count(), m.requests.data(), &done, indices.data(), statuses.data());
            check::that(done != 0, "MPI_Waitsome came back with nothing");
        } while (done != MPI_UNDEFINED);
    });
}

void test_forms() {
    with("MPI_Test", 11, [](Mixture& m) {
        for (MPI_Request& request : m.requests) {
            int flag = 0;
            while (flag == 0)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
    });
    with("MPI_Testall", 12, [](Mixture& m) {
        int flag = 0;
        while (flag == 0)
            MPI_Testall(m.count(), m.requests.data(), &flag, MPI_STATUSES_IGNORE);
    });
    with("MPI_Testany", 13, [](Mixture& m) {
        int index = 0;
        int flag = 0;
        do {
            MPI_Testany(m.count(), m.requests.data(), &index, &flag, MPI_STATUS_IGNORE);
        } while (flag == 0 || index != MPI_UNDEFINED);
    });
    with("MPI_Testsome", 14, [](Mixture& m) {
        int done = 0;
        std::vector<int> indices(m.requests.size());
        do {
            MPI_Testsome(m.count(), m.requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
        } while (done != MPI_UNDEFINED);
    });
    with("MPI_Request_get_status", 15, [](Mixture& m) {
        for (MPI_Request& request : m.requests) {
            int flag = 0;
            MPI_Status status;
            while (flag == 0)
                MPI_Request_get_status(request, &flag, &status);
            MPI_Request_get_status(request, &flag, &status);
            check::that(flag != 0, "a finished request is unfinished again");
            MPI_Wait(&request, &status);
        }
    });
}

// In MPI it is an error to free or cancel a collective's request. It must not hang or crash.
void freed_and_cancelled() {
    std::vector<int> data(5000, check::rank_of(MPI_COMM_WORLD) == 0 ? 7 : 0);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), 5000, MPI_INT, 0, MPI_COMM_WORLD, &request);
    PMPI_Request_free(&request);
    check::that(request == MPI_REQUEST_NULL, "MPI_Request_free left a handle");
    std::vector<int> second(5000, check::rank_of(MPI_COMM_WORLD) == 0 ? 8 : 0);
    MPI_Ibcast(second.data(), 5000, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(second[4999] == 8, "a cancelled ibcast gave {}", second[4999]);
    // Operations of a communicator begin in order, but may end in any order. Only the end of MPI guarantees
    // the first one.
    static std::vector<int> kept;
    kept.swap(data);
}

// A rank that waits for an offloaded operation still serves the host's messages.
void host_progress_while_waiting() {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    if (ranks < 2) return;
    const int count = 1 << 20;  // a rendezvous, which needs both sides to progress
    std::vector<int> large(static_cast<std::size_t>(count), rank);
    std::vector<int> data(1000, rank);
    std::vector<int> all(static_cast<std::size_t>(ranks) * 1000);
    MPI_Request message = MPI_REQUEST_NULL;
    MPI_Request collective = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Isend(large.data(), count, MPI_INT, 1, 3, MPI_COMM_WORLD, &message);
        MPI_Iallgather(data.data(), 1000, MPI_INT, all.data(), 1000, MPI_INT, MPI_COMM_WORLD, &collective);
        MPI_Wait(&collective, MPI_STATUS_IGNORE);  // ends only after rank 1 has our message
        MPI_Wait(&message, MPI_STATUS_IGNORE);
    } else {
        if (rank == 1) MPI_Recv(large.data(), count, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iallgather(data.data(), 1000, MPI_INT, all.data(), 1000, MPI_INT, MPI_COMM_WORLD, &collective);
        MPI_Wait(&collective, MPI_STATUS_IGNORE);
    }
    check::that(rank != 1 || large.back() == 0, "the message was not received");
    check::that(all.back() == ranks - 1, "the all-gather gave {}", all.back());
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    wait_forms();
    test_forms();
    freed_and_cancelled();
    host_progress_while_waiting();
    return check::finish();
}
