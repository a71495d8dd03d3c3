#include "frontends/trace/scope.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace offpath::traced {

void* next(const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    if (found != nullptr) return found;
    std::fprintf(stderr, "offpath: the tracer finds no %s behind it [OFP-0410]\n", name);
    std::abort();
}

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
    if (count <= 0 || type == MPI_DATATYPE_NULL) return 0;
    int size = 0;
    PMPI_Type_size(type, &size);
    return size > 0 ? static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size) : 0;
}

std::uint64_t bytes_of_all(MPI_Comm comm, const int* counts, MPI_Datatype type) {
    int ranks = 0, between = 0;
    if (counts == nullptr || comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &between) != MPI_SUCCESS)
        return 0;
    between != 0 ? PMPI_Comm_remote_size(comm, &ranks) : PMPI_Comm_size(comm, &ranks);
    std::int64_t all = 0;
    for (int i = 0; i < ranks; ++i)
        all += counts[i];
    return bytes_of(all, type);
}

}  // namespace offpath::traced
