// Calls that start large messages do not make the host's MPI take in what arrives: it might answer another
// rank's message before this rank's own is on its way, and so leave the answer to that one behind the data.
// This program counts what the front end asks the host's MPI in vain meanwhile. Two ranks (run.sh).
#include <dlfcn.h>

#include <array>
#include <vector>

#include "check.h"

namespace {

int in_vain = 0;

template <typename Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The front end's calls of these find the program's functions first.
extern "C" {
int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    static const auto test = next<decltype(&PMPI_Test)>("PMPI_Test");
    const int error = test(request, flag, status);
    if (*flag == 0) ++in_vain;
    return error;
}
int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    static const auto get = next<decltype(&PMPI_Request_get_status)>("PMPI_Request_get_status");
    const int error = get(request, flag, status);
    if (*flag == 0) ++in_vain;
    return error;
}
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    static const auto probe = next<decltype(&PMPI_Iprobe)>("PMPI_Iprobe");
    const int error = probe(source, tag, comm, flag, status);
    if (*flag == 0) ++in_vain;
    return error;
}
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int other = 1 - check::rank_of(MPI_COMM_WORLD);
    constexpr int elements = 64 << 10, tag = 3;
    constexpr int steps = 60;
    int asked_in_waits = 0;
    for (int step = 0; step < steps; ++step) {
        const std::vector<int> out(elements, step);
        std::vector<int> in(elements, -1);
        std::array<MPI_Request, 2> requests;
        const int before = in_vain;
        MPI_Irecv(in.data(), elements, MPI_INT, other, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out.data(), elements, MPI_INT, other, tag, MPI_COMM_WORLD, &requests[1]);
        check::that(in_vain == before, "step {}: {} times in vain", step, in_vain - before);
        const int begun = in_vain;
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
        asked_in_waits += in_vain - begun;
        check::that(in == std::vector<int>(elements, step), "step {}: the message is wrong", step);
    }
    check::that(asked_in_waits > 0, "the front end does not call this program's functions");
    return check::finish();
}
