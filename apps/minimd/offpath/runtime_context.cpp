#include "minimd/offpath/runtime_context.h"

#include <cstddef>
#include <cstdint>

namespace minimd {

namespace {

int gather(void* user, const void* mine, std::size_t bytes, void* all) {
    const auto count = static_cast<int>(bytes);
    return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, *static_cast<MPI_Comm*>(user));
}

int rank_on_node(MPI_Comm comm) {
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    return rank;
}

}  // namespace

RuntimeContext::RuntimeContext(MPI_Comm comm) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    offpath_init_params_t parameters{};
    parameters.struct_size = sizeof parameters;
    parameters.threads = OFFPATH_THREADS_SINGLE;
    parameters.allgather = gather;
    parameters.allgather_user = &comm;
    parameters.rank = static_cast<std::uint32_t>(rank);
    parameters.size = static_cast<std::uint32_t>(ranks);
    parameters.local_rank = static_cast<std::uint32_t>(rank_on_node(comm));
    status_ = offpath_init(&parameters, &context_);
}

RuntimeContext::~RuntimeContext() {
    if (status_ == OFFPATH_OK) offpath_finalize(context_);
}

}  // namespace minimd
