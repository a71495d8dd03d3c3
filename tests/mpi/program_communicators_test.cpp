// The program's communicators are as without the front end. It makes no communicator of them and no
// non-blocking collective on them, from which Open MPI would number the program's own differently, and never
// touches their error handlers, which another thread may be setting.
//
// The program prints the numbers of its communicators in Fortran. `same_numbers.sh` compares them with those
// that it gets without the front end.
#include <dlfcn.h>
#include <mpi.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "check.h"

namespace {

std::vector<MPI_Comm> of_program{MPI_COMM_WORLD, MPI_COMM_SELF};
bool calls_itself = false;  // the program, for a new communicator

void meet(const char* call, MPI_Comm comm) {
    if (calls_itself || std::find(of_program.begin(), of_program.end(), comm) == of_program.end()) return;
    check::fail(fmt::format("the front end calls {} on a communicator of the program", call));
}

template <typename Function>
Function* hosts(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string numbers;

void keep(MPI_Comm made) {
    of_program.push_back(made);
    numbers += fmt::format(" {}", MPI_Comm_c2f(made));
}

template <typename Make>
MPI_Comm make(Make call) {
    MPI_Comm made = MPI_COMM_NULL;
    calls_itself = true;
    call(&made);
    calls_itself = false;
    keep(made);
    return made;
}

void forget(MPI_Comm* comm) {
    std::erase(of_program, *comm);
    MPI_Comm_free(comm);
}

// Enough for several agreements, of both kinds.
void agree_on(MPI_Comm comm) {
    for (int i = 0; i < 60; ++i) {
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        check::that(sum == check::size_of(comm), "a sum of {}", sum);
    }
}

void make_windows(MPI_Comm comm) {
    int memory = 0;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, comm, &window);
    MPI_Win_fence(0, window);
    MPI_Barrier(comm);
    MPI_Win_free(&window);
    int* allocated = nullptr;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, static_cast<void*>(&allocated), &window);
    MPI_Win_free(&window);
}

void make_communicators() {
    const int rank = check::rank_of(MPI_COMM_WORLD), ranks = check::size_of(MPI_COMM_WORLD);
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm copy = make([](MPI_Comm* made) { MPI_Comm_dup(MPI_COMM_WORLD, made); });
    MPI_Comm half = make([&](MPI_Comm* made) { MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, made); });
    MPI_Comm own = make([](MPI_Comm* made) { MPI_Comm_dup(MPI_COMM_SELF, made); });
    forget(&copy);
    MPI_Comm created = make([&](MPI_Comm* made) { MPI_Comm_create(MPI_COMM_WORLD, group, made); });
    MPI_Comm grouped = make([&](MPI_Comm* made) { MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, made); });
    MPI_Comm ring = make([&](MPI_Comm* made) {
        const int periodic = 1;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, made);
    });
    MPI_Comm half_of_half = make([&](MPI_Comm* made) { MPI_Comm_dup(half, made); });
    MPI_Comm between = make([&](MPI_Comm* made) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 5, made);
    });
    MPI_Comm merged = make([&](MPI_Comm* made) { MPI_Intercomm_merge(between, rank % 2, made); });
    for (MPI_Comm comm : {MPI_COMM_WORLD, created, ring, half, merged})
        agree_on(comm);
    MPI_Comm later = make([](MPI_Comm* made) { MPI_Comm_dup(MPI_COMM_WORLD, made); });
    for (MPI_Comm comm : {MPI_COMM_WORLD, half, later})
        make_windows(comm);
    for (MPI_Comm* comm : {&half, &own, &created, &grouped, &ring, &half_of_half, &between, &merged, &later})
        forget(comm);
    MPI_Group_free(&group);
}

}  // namespace

#define HOSTS(name, parameters, arguments, comm)                                   \
    extern "C" __attribute__((visibility("default"))) int PMPI_##name parameters { \
        static const auto original = hosts(&PMPI_##name, "PMPI_" #name);           \
        meet("PMPI_" #name, comm);                                                 \
        return original arguments;                                                 \
    }
HOSTS(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made), comm)
HOSTS(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made), comm)
HOSTS(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made), comm)
HOSTS(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
      (comm, type, key, info, made), comm)
HOSTS(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler), comm)
HOSTS(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* handler), (comm, handler), comm)
HOSTS(Ibarrier, (MPI_Comm comm, MPI_Request* request), (comm, request), comm)
HOSTS(Iallreduce,
      (const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
       MPI_Request* request),
      (send, recv, count, type, op, comm, request), comm)

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    make_communicators();
    make_communicators();
    fmt::print("rank {}: communicators{}\n", check::rank_of(MPI_COMM_WORLD), numbers);
    return check::finish();
}
