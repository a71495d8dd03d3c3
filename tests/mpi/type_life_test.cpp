// A derived datatype ends when the program has freed it and nothing uses it any more. Its attributes are
// deleted then, however it was used before.
#include <array>
#include <functional>
#include <string>

#include "check.h"

namespace {

constexpr int count = 4000;  // elements, of two ints each and a gap
constexpr int rounds = 20;

int keyval = MPI_KEYVAL_INVALID;
int deletions = 0;
int on_delete(MPI_Datatype, int, void*, void*) {
    ++deletions;
    return MPI_SUCCESS;
}

MPI_Datatype make_type() {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 3 * static_cast<MPI_Aint>(sizeof(int)), &type);
    PMPI_Type_free(&pair);
    MPI_Type_commit(&type);
    PMPI_Type_set_attr(type, keyval, &deletions);
    return type;
}

using Use = std::function<void(MPI_Datatype&, std::vector<int>&)>;

void expect_end(const std::string& name, const Use& use) {
    for (int round = 0; round < rounds; ++round) {
        std::vector<int> data(3 * count);
        MPI_Datatype type = make_type();
        deletions = 0;
        use(type, data);
        if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
        check::that(deletions == 1, "{} deletions of a type's attribute, {}, round {}", deletions, name,
                    round);
    }
}

void collective(MPI_Datatype& type, std::vector<int>& data) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), count, type, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void freed_while_pending(MPI_Datatype& type, std::vector<int>& data) {
    MPI_Request request = MPI_REQUEST_NULL;
    data.assign(data.size(), check::rank_of(MPI_COMM_WORLD) == 0 ? 7 : 1);
    MPI_Ibcast(data.data(), count, type, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(data[0] == 7 && data[3 * count - 2] == 7, "a broadcast whose type was freed");
}

// Sends in a ring, through the device.
void message(MPI_Datatype& type, std::vector<int>& data) {
    const int size = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    std::vector<int> in(data.size());
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(in.data(), count, type, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data.data(), count, type, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
}

void persistent_message(MPI_Datatype& type, std::vector<int>& data) {
    const int size = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    std::vector<int> in(data.size());
    std::array<MPI_Request, 2> requests{};
    MPI_Recv_init(in.data(), count, type, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(data.data(), count, type, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    MPI_Startall(2, requests.data());
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    for (MPI_Request& request : requests)
        MPI_Request_free(&request);
}

void one_sided(MPI_Datatype& type, std::vector<int>& data) {
    std::vector<int> memory(data.size());
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(data.data(), count, type, 0, 0, count, type, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

// A type that another type refers to lives as long as that one.
void part_of_another(MPI_Datatype& type, std::vector<int>& data) {
    MPI_Datatype whole = MPI_DATATYPE_NULL;
    collective(type, data);
    MPI_Type_contiguous(2, type, &whole);
    MPI_Type_commit(&whole);
    MPI_Type_free(&type);
    check::that(deletions == 0, "a type ended that another one refers to");
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), count / 2, whole, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&whole);
}

// This type is never freed. MPICH reports at its end what was made of it (run.sh).
void predefined_with_a_gap() {
    std::vector<double> pairs(2 * count);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(pairs.data(), count, MPI_DOUBLE_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_delete, &keyval, nullptr);
    expect_end("collective", collective);
    expect_end("freed while pending", freed_while_pending);
    expect_end("message", message);
    expect_end("persistent message", persistent_message);
    expect_end("one-sided", one_sided);
    expect_end("part of another", part_of_another);
    predefined_with_a_gap();
    PMPI_Type_free_keyval(&keyval);
    return check::finish();
}
