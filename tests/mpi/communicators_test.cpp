// Communicators made in every way carry offloaded operations, and may be freed while these are pending.
#include <array>
#include <memory>

#include "check.h"

namespace {

constexpr int count = 3000;

// An all-gather of one rank that is outstanding on a communicator.
struct Pending {
    std::vector<int> send, recv;
    std::vector<int> expected;
    MPI_Request request = MPI_REQUEST_NULL;
    std::string name;
};

Pending post(MPI_Comm comm, const std::string& name) {
    Pending pending;
    const auto ranks = static_cast<std::size_t>(check::size_of(comm));
    pending.name = name;
    pending.send = check::pattern(count, static_cast<int>(name.size()));
    pending.recv.resize(ranks * count);
    pending.expected.resize(ranks * count);
    PMPI_Allgather(pending.send.data(), count, MPI_INT, pending.expected.data(), count, MPI_INT, comm);
    MPI_Iallgather(pending.send.data(), count, MPI_INT, pending.recv.data(), count, MPI_INT, comm,
                   &pending.request);
    return pending;
}

void finish(Pending& pending) {
    MPI_Wait(&pending.request, MPI_STATUS_IGNORE);
    check::that(pending.recv == pending.expected, "iallgather on {}", pending.name);
}

void use(MPI_Comm comm, const std::string& name) {
    Pending pending = post(comm, name);
    finish(pending);
}

void use_and_free(MPI_Comm& comm, const std::string& name) {
    if (comm == MPI_COMM_NULL) return;
    use(comm, name);
    MPI_Comm_free(&comm);
}

// The callbacks of the user's attribute run as often as the user duplicates and frees, and not more often.
int copies = 0;
int deletions = 0;
int on_copy(MPI_Comm, int, void*, void* value, void* copy, int* flag) {
    ++copies;
    *static_cast<void**>(copy) = value;
    *flag = 1;
    return MPI_SUCCESS;
}
int on_delete(MPI_Comm, int, void*, void*) {
    ++deletions;
    return MPI_SUCCESS;
}

void attributes_of_the_user() {
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm base = MPI_COMM_NULL;
    MPI_Comm copy = MPI_COMM_NULL;
    PMPI_Comm_create_keyval(on_copy, on_delete, &keyval, nullptr);
    MPI_Comm_dup(MPI_COMM_WORLD, &base);
    PMPI_Comm_set_attr(base, keyval, &copies);
    MPI_Comm_dup(base, &copy);
    use_and_free(copy, "dup of a communicator with an attribute");
    use_and_free(base, "communicator with an attribute");
    PMPI_Comm_free_keyval(&keyval);
    check::that(copies == 1 && deletions == 2, "{} copies and {} deletions of the user's attribute", copies,
                deletions);
}

void topologies() {
    const int size = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    std::array<int, 2> dims = {0, 0};
    const std::array<int, 2> periods = {1, 0};
    const std::array<int, 2> keep_rows = {0, 1};
    MPI_Comm grid = MPI_COMM_NULL;
    MPI_Comm row = MPI_COMM_NULL;
    MPI_Comm ring = MPI_COMM_NULL;
    PMPI_Dims_create(size, 2, dims.data());
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims.data(), periods.data(), 1, &grid);
    MPI_Cart_sub(grid, keep_rows.data(), &row);
    use_and_free(row, "row of a grid");
    use_and_free(grid, "grid");
    const int next = (rank + 1) % size;
    const int previous = (rank + size - 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    use_and_free(ring, "ring graph");
    const int one = 1;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    use_and_free(ring, "distributed graph");
    std::vector<int> index, edges;
    for (int r = 0; r < size; ++r) {
        edges.push_back((r + 1) % size);
        index.push_back(r + 1);
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &ring);
    use_and_free(ring, "graph");
}

void groups() {
    const int size = check::size_of(MPI_COMM_WORLD);
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    std::vector<int> odd_backwards;
    for (int r = size - 1; r >= 0; --r) {
        if (r % 2 == 1 || r == 0) odd_backwards.push_back(r);
    }
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_incl(world, static_cast<int>(odd_backwards.size()), odd_backwards.data(), &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &made);
    use_and_free(made, "group of the odd");
    int position = 0;
    PMPI_Group_rank(some, &position);
    if (position != MPI_UNDEFINED) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, &made);
        use_and_free(made, "create_group of the odd");
    }
    PMPI_Group_free(&some);
    PMPI_Group_free(&world);
}

void inter_communicator() {
    if (check::size_of(MPI_COMM_WORLD) < 2) return;
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm merged = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    PMPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 5, &inter);
    int remote = 0;
    PMPI_Comm_remote_size(inter, &remote);
    std::vector<int> send = check::pattern(count, 1);
    std::vector<int> recv(static_cast<std::size_t>(remote) * count);
    std::vector<int> expected(recv.size());
    PMPI_Allgather(send.data(), count, MPI_INT, expected.data(), count, MPI_INT, inter);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(send.data(), count, MPI_INT, recv.data(), count, MPI_INT, inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(recv == expected, "iallgather on an inter-communicator");
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    use_and_free(merged, "merged");
    MPI_Comm_free(&inter);
    use_and_free(half, "half");
}

void non_blocking_dup() {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use_and_free(copy, "idup");
}

// An MPI_Ialltoallv with one int for each pair.
class SmallPairs {
  public:
    SmallPairs(MPI_Comm comm, int seed) : ones_(static_cast<std::size_t>(check::size_of(comm)), 1) {
        send_ = check::pattern(ones_.size(), seed);
        recv_.resize(ones_.size());
        expected_.resize(ones_.size());
        for (std::size_t i = 0; i < ones_.size(); ++i)
            places_.push_back(static_cast<int>(i));
        PMPI_Alltoall(send_.data(), 1, MPI_INT, expected_.data(), 1, MPI_INT, comm);
        MPI_Ialltoallv(send_.data(), ones_.data(), places_.data(), MPI_INT, recv_.data(), ones_.data(),
                       places_.data(), MPI_INT, comm, &request_);
    }
    void finish() {
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
        check::that(recv_ == expected_, "ialltoallv of small pairs on a freed communicator");
    }

  private:
    std::vector<int> ones_, places_, send_, recv_, expected_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

void freed_while_pending() {
    std::vector<Pending> pending;
    std::vector<std::unique_ptr<SmallPairs>> small;
    for (int i = 0; i < 6; ++i) {
        MPI_Comm copy = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        pending.push_back(post(copy, fmt::format("dup {} freed early", i)));
        pending.push_back(post(copy, fmt::format("dup {} freed early, again", i)));
        // Small pairs of an MPI_Ialltoallv use a communicator of their own, which must outlive this one too.
        small.push_back(std::make_unique<SmallPairs>(copy, i));
        MPI_Comm_free(&copy);
    }
    for (Pending& one : pending)
        finish(one);
    for (auto& one : small)
        one->finish();
}

// MPI_Comm_disconnect completes pending operations first.
void disconnected_while_pending() {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    Pending pending = post(copy, "dup that was disconnected");
    MPI_Comm_disconnect(&copy);
    check::that(copy == MPI_COMM_NULL, "MPI_Comm_disconnect left a handle");
    check::that(pending.recv == pending.expected, "MPI_Comm_disconnect did not wait for an iallgather");
    finish(pending);
}

// The host's MPI reuses handles. Knowledge about a freed communicator must not apply to the next one.
void many_one_after_the_other() {
    const int rank = check::rank_of(MPI_COMM_WORLD);
    for (int i = 0; i < 20; ++i) {
        MPI_Comm made = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 0 ? MPI_UNDEFINED : (rank + i) % 2, i % 2 == 0 ? rank : -rank,
                       &made);
        use_and_free(made, fmt::format("split {}", i));
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm made = MPI_COMM_NULL;
    use(MPI_COMM_WORLD, "world");
    use(MPI_COMM_SELF, "self");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    use_and_free(made, "node");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
    use_and_free(made, "dup with info");
    attributes_of_the_user();
    topologies();
    groups();
    inter_communicator();
    non_blocking_dup();
    freed_while_pending();
    disconnected_while_pending();
    many_one_after_the_other();
    return check::finish();
}
