// Notes how long a rank runs, from the end of MPI_Init to the beginning of MPI_Finalize, with offload or
// without: LD_PRELOAD loads it before everything else, and it calls the next library of the process. Writes
// the seconds into a file of $OFFPATH_RUN_TIME. Works with any MPI, of which it knows three functions of C
// only.
#include "profile/clock.h"

#include <offpath/types.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::uint64_t began_ns = 0;

// The function that would have been called without this library.
template <typename Function>
Function* next(const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::fprintf(stderr, "offpath-run-time: the program has no %s [OFP-0410]\n", name);
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}

void write_seconds() {
    const char* const folder = std::getenv("OFFPATH_RUN_TIME");
    if (folder == nullptr || began_ns == 0) return;
    const std::uint64_t ns = offpath::profile::nanoseconds(CLOCK_MONOTONIC) - began_ns;
    char node[256] = "";
    gethostname(node, sizeof node - 1);
    const std::string path = std::string(folder) + "/" + node + "-" + std::to_string(getpid());
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return;
    std::fprintf(file, "%.9f\n", static_cast<double>(ns) * 1e-9);
    std::fclose(file);
}

int begin(int result) {
    began_ns = offpath::profile::nanoseconds(CLOCK_MONOTONIC);
    return result;
}

}  // namespace

extern "C" OFFPATH_API int MPI_Init(int* argc, char*** argv) {
    return begin(next<int(int*, char***)>("MPI_Init")(argc, argv));
}

extern "C" OFFPATH_API int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    return begin(next<int(int*, char***, int, int*)>("MPI_Init_thread")(argc, argv, required, provided));
}

extern "C" OFFPATH_API int MPI_Finalize() {
    write_seconds();
    return next<int()>("MPI_Finalize")();
}
