// Calls that need no message: ranks, times, sizes, statuses, error handlers.
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/datatypes.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/requests.h"

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace offpath::region_mpi {

void fill(MPI_Status* status, const Outcome& outcome) {
    if (status == MPI_STATUS_IGNORE) return;
    status->MPI_SOURCE = outcome.source;
    status->MPI_TAG = outcome.tag;
#ifdef OPEN_MPI
    status->_ucount = outcome.bytes;
    status->_cancelled = 0;
#else
    status->count_lo = static_cast<int>(outcome.bytes & UINT_MAX);
    status->count_hi_and_cancelled = static_cast<int>(outcome.bytes >> 32 << 1);
#endif
}

namespace {

std::size_t bytes_in(const MPI_Status& status) {
#ifdef OPEN_MPI
    return status._ucount;
#else
    return static_cast<std::size_t>(static_cast<unsigned>(status.count_hi_and_cancelled) >> 1) << 32 |
           static_cast<unsigned>(status.count_lo);
#endif
}

int count_in(const MPI_Status& status, MPI_Datatype type) {
    const std::size_t bytes = bytes_in(status), each = type_of(type).bytes;
    if (each == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
    return bytes % each != 0 || bytes / each > INT_MAX ? MPI_UNDEFINED : static_cast<int>(bytes / each);
}

void set_handler(Communicator& communicator, MPI_Errhandler handler) {
    const MPI_Errhandler wanted = own(handler);
    if (wanted != MPI_ERRORS_RETURN && wanted != MPI_ERRORS_ARE_FATAL)
        throw MpiError{MPI_ERR_UNSUPPORTED_OPERATION,
                       "target regions know MPI_ERRORS_RETURN and MPI_ERRORS_ARE_FATAL only"};
    communicator.errors_return = wanted == MPI_ERRORS_RETURN;
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Comm_rank(MPI_Comm comm, int* rank) {
    return in_call("MPI_Comm_rank", comm,
                   [&](Communicator& communicator) { *rank = static_cast<int>(communicator.rank); });
}

OFFPATH_EXPORT int MPI_Comm_size(MPI_Comm comm, int* size) {
    return in_call("MPI_Comm_size", comm,
                   [&](Communicator& communicator) { *size = static_cast<int>(communicator.size); });
}

OFFPATH_EXPORT int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
    return in_call("MPI_Comm_set_errhandler", comm,
                   [&](Communicator& communicator) { set_handler(communicator, handler); });
}

OFFPATH_EXPORT int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
    return in_call("MPI_Comm_get_errhandler", comm, [&](Communicator& communicator) {
        *handler = communicator.errors_return ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL;
    });
}

OFFPATH_EXPORT int MPI_Initialized(int* flag) {
    *flag = attached() ? 1 : 0;
    return MPI_SUCCESS;
}

OFFPATH_EXPORT int MPI_Query_thread(int* provided) {
    *provided = MPI_THREAD_MULTIPLE;
    return MPI_SUCCESS;
}

OFFPATH_EXPORT double MPI_Wtime() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

OFFPATH_EXPORT double MPI_Wtick() {
    return 1e-9;
}

OFFPATH_EXPORT int MPI_Get_processor_name(char* name, int* length) {
    name[0] = name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
    gethostname(name, MPI_MAX_PROCESSOR_NAME - 1);
    *length = static_cast<int>(std::strlen(name));
    return MPI_SUCCESS;
}

OFFPATH_EXPORT int MPI_Abort(MPI_Comm, int code) {
    std::fprintf(stderr, "MPI_Abort in a target region, with code %d [OFP-0404]\n", code);
    die();
}

OFFPATH_EXPORT int MPI_Get_count(const MPI_Status* status, MPI_Datatype type, int* count) {
    return in_call("MPI_Get_count", MPI_COMM_WORLD, [&](Communicator&) { *count = count_in(*status, type); });
}

OFFPATH_EXPORT int MPI_Type_size(MPI_Datatype type, int* size) {
    return in_call("MPI_Type_size", MPI_COMM_WORLD,
                   [&](Communicator&) { *size = static_cast<int>(type_of(type).bytes); });
}

OFFPATH_EXPORT int MPI_Get_address(const void* location, MPI_Aint* address) {
    *address = reinterpret_cast<MPI_Aint>(location);
    return MPI_SUCCESS;
}

OFFPATH_EXPORT int MPI_Error_class(int code, int* of_class) {
    *of_class = code;
    return MPI_SUCCESS;
}

OFFPATH_EXPORT int MPI_Error_string(int code, char* text, int* length) {
    *length = std::snprintf(text, MPI_MAX_ERROR_STRING, "MPI error %d of a target region", code);
    return MPI_SUCCESS;
}
