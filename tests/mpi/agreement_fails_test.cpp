// The front end's own calls of the host's MPI fail while the program makes communicators and windows. The
// program must not see that: its calls succeed, its error handler is not called, the job does not end, and
// what it made works and has the handler that it would have without the front end. With the argument "fatal"
// the handler is the predefined one that ends the job, otherwise one of the program.
//
// They fail on all ranks, which then take no part in them, or on one rank only, which takes part and gets an
// error. All ranks must see alike what they made. With the argument "unknown", a rank cannot know what the
// others know: its call ends with an error, of which its communicator's handler hears, and the job goes on.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "check.h"

namespace {

enum class Fails {
    nothing,
    agreements,
    introductions,
    comparisons,
    words,
    communicators
} fails = Fails::nothing;
constexpr int everywhere = -1;
int fails_on = everywhere;  // or on this rank of the world
int passing = 0;            // so many comparisons are good before one fails there
int failed = 0;             // calls of the front end

bool fails_here() {
    return fails_on == everywhere || fails_on == check::rank_of(MPI_COMM_WORLD);
}

// Does what an MPI library does with an error.
int fail_on(MPI_Comm comm) {
    ++failed;
    PMPI_Comm_call_errhandler(comm, MPI_ERR_INTERN);
    return MPI_ERR_INTERN;
}

// Nothing that the call delivers reaches the caller.
template <typename Call>
int take_part_and_fail(MPI_Comm comm, std::size_t bytes, Call call) {
    std::vector<char> unseen(bytes);
    call(unseen.data());
    return fail_on(comm);
}

template <typename Function>
Function* hosts(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int handled = 0;
void count_error(MPI_Comm*, int*, ...) {
    ++handled;
}

bool own_handler = true;

void use(MPI_Comm comm, const char* what) {
    const auto size = static_cast<std::size_t>(check::size_of(comm));
    constexpr std::size_t block = 5000;
    const std::vector<int> mine(size * block, check::rank_of(comm));
    std::vector<int> all(size * block, -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(mine.data(), block, MPI_INT, all.data(), block, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bool good = true;
    for (std::size_t i = 0; i < all.size(); ++i)
        good = good && all[i] == static_cast<int>(i / block);
    check::that(good, "{}: wrong data", what);
}

void check_result(int error, const char* what) {
    fails = Fails::nothing;
    check::that(error == MPI_SUCCESS, "{}: error {}", what, error);
    check::that(failed > 0 || !fails_here(), "{}: no call of the front end failed", what);
    check::that(handled == 0, "{}: the handler heard of it {} times", what, handled);
    failed = handled = 0;
}

void check_handler(MPI_Comm comm, const char* what) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    check::that(handled == 1, "{}: the handler was called {} times", what, handled);
    handled = 0;
}

template <typename Make>
void communicator(const char* what, Make make) {
    MPI_Comm made = MPI_COMM_NULL;
    fails = fails_on == everywhere ? Fails::agreements : Fails::introductions;
    const int error = make(&made);
    check_result(error, what);
    if (made == MPI_COMM_NULL) return check::fail(what);
    // MPICH 4.0's other calls leave the new communicator without a handler.
    if (own_handler && std::string_view(what).starts_with("dup")) check_handler(made, what);
    use(made, what);
    MPI_Comm_free(&made);
}

void communicators(MPI_Comm parent, MPI_Group group) {
    communicator("dup", [&](MPI_Comm* made) { return MPI_Comm_dup(parent, made); });
    communicator("dup_with_info",
                 [&](MPI_Comm* made) { return MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, made); });
    communicator("split",
                 [&](MPI_Comm* made) { return MPI_Comm_split(parent, 0, -check::rank_of(parent), made); });
    communicator("create", [&](MPI_Comm* made) { return MPI_Comm_create(parent, group, made); });
    communicator("create_group",
                 [&](MPI_Comm* made) { return MPI_Comm_create_group(parent, group, 1, made); });
    communicator("cart_create", [&](MPI_Comm* made) {
        const int ranks = check::size_of(parent), periodic = 1;
        return MPI_Cart_create(parent, 1, &ranks, &periodic, 0, made);
    });
}

// A rank has its introductions and does not hear whether the others have theirs.
void in_the_dark(MPI_Comm parent) {
    MPI_Comm made = MPI_COMM_NULL;
    fails = Fails::comparisons;
    passing = 0;
    fails_on = 0;
    const int error = MPI_Comm_dup(parent, &made);
    fails = Fails::nothing;
    const bool dark = check::rank_of(MPI_COMM_WORLD) == 0;
    check::that(error == (dark ? MPI_ERR_INTERN : MPI_SUCCESS), "in the dark: error {}", error);
    check::that(handled == (dark ? 1 : 0), "in the dark: the handler was called {} times", handled);
    failed = handled = 0;
}

void window(MPI_Comm comm, Fails what_fails, const char* what) {
    const int ranks = check::size_of(comm), rank = check::rank_of(comm);
    std::vector<int> memory(16, -1);
    MPI_Win made = MPI_WIN_NULL;
    fails = what_fails;
    const int error =
        MPI_Win_create(memory.data(), 16 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &made);
    check_result(error, what);
    if (made == MPI_WIN_NULL) return check::fail(what);
    MPI_Win_fence(0, made);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, made);
    MPI_Win_fence(0, made);
    check::that(memory[0] == (rank + ranks - 1) % ranks, "{}: a put of {}", what, memory[0]);
    MPI_Win_free(&made);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int PMPI_Allgather(const void* send, int send_count,
                                                          MPI_Datatype send_type, void* recv, int recv_count,
                                                          MPI_Datatype recv_type, MPI_Comm comm) {
    static const auto original = hosts(&PMPI_Allgather, "PMPI_Allgather");
    if (fails == Fails::agreements) return fail_on(comm);
    if (fails == Fails::introductions && fails_here()) {
        const auto bytes = static_cast<std::size_t>(recv_count * check::size_of(comm));  // of MPI_BYTE
        return take_part_and_fail(comm, bytes, [&](void* unseen) {
            original(send, send_count, send_type, unseen, recv_count, recv_type, comm);
        });
    }
    return original(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

__attribute__((visibility("default"))) int PMPI_Allreduce(const void* send, void* recv, int count,
                                                          MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    static const auto original = hosts(&PMPI_Allreduce, "PMPI_Allreduce");
    if (fails == Fails::agreements) return fail_on(comm);
    if (fails == Fails::comparisons && fails_here() && passing-- == 0) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::uint64_t);
        const void* const from = send == MPI_IN_PLACE ? recv : send;
        return take_part_and_fail(comm, bytes,
                                  [&](void* unseen) { original(from, unseen, count, type, op, comm); });
    }
    return original(send, recv, count, type, op, comm);
}

__attribute__((visibility("default"))) int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
                                                                  MPI_Comm* made) {
    static const auto original = hosts(&PMPI_Comm_create_group, "PMPI_Comm_create_group");
    if (fails != Fails::communicators || !fails_here()) return original(comm, group, tag, made);
    if (fails_on != everywhere) original(comm, group, tag, made);
    *made = MPI_COMM_NULL;
    return fail_on(comm);
}

// What ranks of a team agree on are messages of these elements.
__attribute__((visibility("default"))) int PMPI_Irecv(void* buffer, int count, MPI_Datatype type, int source,
                                                      int tag, MPI_Comm comm, MPI_Request* request) {
    static const auto original = hosts(&PMPI_Irecv, "PMPI_Irecv");
    if (fails != Fails::words || type != MPI_UINT64_T || !fails_here())
        return original(buffer, count, type, source, tag, comm, request);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::uint64_t);
    return take_part_and_fail(comm, bytes, [&](void* unseen) {
        PMPI_Recv(unseen, count, type, source, tag, comm, MPI_STATUS_IGNORE);
    });
}

}  // extern "C"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    own_handler = argc < 2 || std::string_view(argv[1]) != "fatal";
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_create_errhandler(count_error, &handler);
    PMPI_Comm_set_errhandler(parent, own_handler ? handler : MPI_ERRORS_ARE_FATAL);
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(parent, &group);
    communicators(parent, group);
    window(parent, Fails::agreements, "a window without an agreement");
    window(parent, Fails::communicators, "a window without a communicator");
    for (const int rank : {0, check::size_of(parent) - 1}) {
        fails_on = rank;
        communicators(parent, group);
        window(parent, Fails::introductions, "a window whose ranks do not know each other's part");
        window(parent, Fails::communicators, "a window without a communicator on one rank");
    }
    // Others' words reach rank 0 on their way up.
    fails_on = 0;
    window(parent, Fails::words, "a window without an agreement on one rank");
    if (own_handler) check_handler(parent, "the parent");
    if (argc > 1 && std::string_view(argv[1]) == "unknown") in_the_dark(parent);
    use(parent, "the parent, by the device");
    PMPI_Group_free(&group);
    PMPI_Errhandler_free(&handler);
    MPI_Comm_free(&parent);
    return check::finish();
}
