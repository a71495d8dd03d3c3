// MPI_Finalize with operations that were never waited for, and with communicators that were never freed. The
// components that Open MPI has loaded by then are still there at the end (runtime/kept_components.h).
#include <link.h>

#include <set>
#include <string>

#include "check.h"

namespace {

std::set<std::string> components() {
    std::set<std::string> found;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* to) {
            const std::string path = object->dlpi_name;
            if (path.find("/mca_") != std::string::npos)
                static_cast<std::set<std::string>*>(to)->insert(path);
            return 0;
        },
        &found);
    return found;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const auto ranks = static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD));
    const int count = 50000;
    static std::vector<int> send, recv;  // outlive MPI
    send = check::pattern(ranks * count, 1);
    recv.resize(ranks * count);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Request first = MPI_REQUEST_NULL;
    MPI_Request second = MPI_REQUEST_NULL;
    static std::vector<int> all;
    all.resize(ranks * count);
    MPI_Ialltoall(send.data(), count, MPI_INT, recv.data(), count, MPI_INT, MPI_COMM_WORLD, &first);
    MPI_Iallgather(send.data(), count, MPI_INT, all.data(), count, MPI_INT, copy, &second);
    const int mine = check::rank_of(MPI_COMM_WORLD);
    std::vector<int> expected(ranks * count);
    PMPI_Alltoall(send.data(), count, MPI_INT, expected.data(), count, MPI_INT, MPI_COMM_WORLD);
    MPI_Request_free(&second);
    const std::set<std::string> loaded = components();
    MPI_Finalize();
    if (components() != loaded) {
        std::fprintf(stderr, "rank %d: FAILED components were unloaded\n", mine);
        return 1;
    }
    // Operations that all ranks have posted are done when MPI has ended.
    if (recv != expected) {
        std::fprintf(stderr, "rank %d: FAILED data after MPI_Finalize\n", mine);
        return 1;
    }
    return 0;
}
