#include "bypass.h"

#include <mpi.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/environment.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

std::atomic<bool> saw_init{false}, saw_session{false};

// What launchers tell a process about itself, since its MPI may be gone by now. -1: nothing.
int told(std::initializer_list<const char*> names) {
    for (const char* const name : names)
        if (const char* const value = std::getenv(name); value != nullptr) return std::atoi(value);
    return -1;
}

bool speaks() {
    const int rank = told({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"});
    const int size = told({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
    return rank <= 0 && size != 1;
}

const char* reason() {
    if (saw_session.load())
        return "the program uses MPI's sessions, which stay on the host's MPI; after MPI_Init it would be "
               "offloaded";
    int initialized = 0;
    PMPI_Initialized(&initialized);
    if (initialized == 0) return nullptr;
    return "the program's calls of MPI pass offpath by: it looks them up in the MPI library itself, as "
           "Python's "
           "ctypes and dlopen with RTLD_DEEPBIND do, or a tool that was loaded before offpath calls "
           "PMPI_Init";
}

__attribute__((destructor)) void say_why_not() try {
    if (saw_init.load() || !speaks()) return;
    const char* const why = reason();
    if (why == nullptr || !environment::flag("OFFPATH", true) ||
        environment::number("OFFPATH_VERBOSE", 1) == 0)
        return;
    warn(Code::not_supported, fmt::format("nothing was offloaded: {}", why));
    std::ofstream(session_directory() + "/told");  // `offpath run` then does not guess
} catch (const std::exception&) {
    // The settings are wrong, and nothing depends on them here.
}

}  // namespace

void note_init() {
    saw_init.store(true);
}

void note_session() {
    saw_session.store(true);
}

}  // namespace offpath::mpi
