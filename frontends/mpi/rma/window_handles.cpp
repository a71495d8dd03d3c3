#include "window_handles.h"

#include <offpath/types.h>

#include <array>
#include <mutex>

#include "runtime/own_communicators.h"
#include "windows.h"

namespace offpath::mpi {
namespace {

MPI_Comm alone = MPI_COMM_NULL;  // has only this rank; returns errors
std::mutex one_maker;            // calls on one communicator must not overlap

// Returns the place of the attribute's value, in the form of C's MPI_Win_get_attr. Null if `keyval` is none
// of these attributes.
void* place_of(Window::Traits& traits, int keyval) {
    if (keyval == MPI_WIN_BASE) return traits.base;
    if (keyval == MPI_WIN_SIZE) return &traits.bytes;
    if (keyval == MPI_WIN_DISP_UNIT) return &traits.disp_unit;
    if (keyval == MPI_WIN_CREATE_FLAVOR) return &traits.flavor;
    return keyval == MPI_WIN_MODEL ? &traits.model : nullptr;
}

}  // namespace

MPI_Win make_handle(MPI_Info info) {
    // If its one-sided messages do not work, Open MPI 4.1 makes windows of one rank only by MPI_Win_allocate.
    // Other libraries may be able to make them only in another way.
    const std::lock_guard lock(one_maker);
    MPI_Win handle = MPI_WIN_NULL;
    void* memory = nullptr;
    if (PMPI_Win_allocate(8, 1, info, alone, static_cast<void*>(&memory), &handle) == MPI_SUCCESS ||
        PMPI_Win_create_dynamic(info, alone, &handle) == MPI_SUCCESS ||
        PMPI_Win_create(nullptr, 0, 1, info, alone, &handle) == MPI_SUCCESS)
        return handle;
    return MPI_WIN_NULL;
}

bool room_for_handle() {
    const std::lock_guard lock(one_maker);
    std::array<MPI_Comm, 4> made{};
    std::size_t count = 0;
    while (count < made.size() && PMPI_Comm_dup(alone, &made[count]) == MPI_SUCCESS)
        ++count;
    for (std::size_t i = 0; i < count; ++i)
        PMPI_Comm_free(&made[i]);
    return count == made.size();
}

bool own_attribute(MPI_Win win, int keyval, MPI_Aint& value) {
    Window* window = record_of(win);
    if (window == nullptr) return false;
    void* const place = place_of(window->traits, keyval);
    if (keyval == MPI_WIN_BASE) {
        value = reinterpret_cast<MPI_Aint>(place);
    } else if (keyval == MPI_WIN_SIZE) {
        value = window->traits.bytes;
    } else if (place != nullptr) {
        value = *static_cast<const int*>(place);
    } else {
        return false;
    }
    return true;
}

void open_handles() {
    alone = own_communicator(MPI_COMM_SELF);
}

void close_handles() {
    PMPI_Comm_free(&alone);
}

}  // namespace offpath::mpi

using namespace offpath::mpi;

extern "C" {

OFFPATH_API int MPI_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
    const int result = PMPI_Win_get_attr(win, keyval, value, flag);
    if (result != MPI_SUCCESS || *flag == 0) return result;
    Window* window = record_of(win);
    if (window == nullptr) return result;
    void* const place = place_of(window->traits, keyval);
    if (place != nullptr || keyval == MPI_WIN_BASE) *static_cast<void**>(value) = place;
    return result;
}

OFFPATH_API int MPI_Win_get_group(MPI_Win win, MPI_Group* group) {
    const Window* window = group != nullptr ? record_of(win) : nullptr;
    return window == nullptr ? PMPI_Win_get_group(win, group) : PMPI_Comm_group(window->comm, group);
}

OFFPATH_API int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr) {
    const Window* window = find_window(win);
    return window == nullptr ? PMPI_Win_shared_query(win, rank, size, disp_unit, baseptr)
                             : raise(*window, MPI_ERR_RMA_FLAVOR);
}

#if MPI_VERSION >= 4
OFFPATH_API int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit,
                                       void* baseptr) {
    const Window* window = find_window(win);
    return window == nullptr ? PMPI_Win_shared_query_c(win, rank, size, disp_unit, baseptr)
                             : raise(*window, MPI_ERR_RMA_FLAVOR);
}
#endif

}  // extern "C"
