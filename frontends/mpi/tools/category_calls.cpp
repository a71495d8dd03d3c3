// MPI_T's calls for categories: "offpath" has all variables of offpath. The categories of the host's MPI hold
// its own variables, under the numbers that tools know.
#include <mpi.h>
#include <offpath/types.h>

#include <algorithm>

#include "control_variables.h"
#include "numbers.h"
#include "performance_variables.h"

namespace offpath::mpi::tools {
namespace {

constexpr const char* our_name = "offpath";

// The members of a category: offpath's are all of `numbers`, the host's come from `host`.
template <typename Host>
int give_members(int number, int room, int* indices, Numbers& numbers, std::size_t ours, Host host) {
    int index = -1;
    int error = look_up(category_numbers(), number, index);
    if (error == MPI_SUCCESS) error = numbers.count(nullptr);
    if (error != MPI_SUCCESS) return error;
    const int count = std::min(room, static_cast<int>(ours));
    if (index >= 0) {
        for (int i = 0; i < count; ++i)
            indices[i] = numbers.of_ours(i);
        return MPI_SUCCESS;
    }
    // The host's MPI may have fewer members than there is room for, and leaves the rest as it is.
    std::fill_n(indices, std::max(room, 0), -1);
    error = host(number, room, indices);
    if (error != MPI_SUCCESS) return error;
    for (int i = 0; i < room; ++i)
        if (indices[i] >= 0) indices[i] = numbers.from_host(indices[i]);
    return MPI_SUCCESS;
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_T_category_get_num(int* num) {
    return category_numbers().count(num);
}

OFFPATH_API int MPI_T_category_get_info(int number, char* name, int* name_length, char* meaning,
                                        int* meaning_length, int* control, int* performance,
                                        int* categories) {
    int index = -1;
    if (const int error = look_up(category_numbers(), number, index); error != MPI_SUCCESS) return error;
    if (index < 0)
        return PMPI_T_category_get_info(number, name, name_length, meaning, meaning_length, control,
                                        performance, categories);
    give(std::string(our_name), name, name_length);
    give(std::string("communication that offpath takes off the host's cores"), meaning, meaning_length);
    give(static_cast<int>(control_variables().size()), control);
    give(static_cast<int>(performance_variables().size()), performance);
    give(0, categories);
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_T_category_get_index(const char* name, int* number) {
    if (const int error = category_numbers().count(nullptr); error != MPI_SUCCESS) return error;
    if (name != nullptr && std::string(our_name) == name) {
        give(category_numbers().of_ours(0), number);
        return MPI_SUCCESS;
    }
    const int error = PMPI_T_category_get_index(name, number);
    if (error == MPI_SUCCESS && number != nullptr) *number = category_numbers().from_host(*number);
    return error;
}

OFFPATH_API int MPI_T_category_get_cvars(int number, int room, int indices[]) {
    return give_members(number, room, indices, control_numbers(), control_variables().size(),
                        PMPI_T_category_get_cvars);
}

OFFPATH_API int MPI_T_category_get_pvars(int number, int room, int indices[]) {
    return give_members(number, room, indices, performance_numbers(), performance_variables().size(),
                        PMPI_T_category_get_pvars);
}

OFFPATH_API int MPI_T_category_get_categories(int number, int room, int indices[]) {
    return give_members(number, room, indices, category_numbers(), 0, PMPI_T_category_get_categories);
}

#if MPI_VERSION >= 4
OFFPATH_API int MPI_T_category_get_num_events(int number, int* events) {
    int index = -1;
    if (const int error = look_up(category_numbers(), number, index); error != MPI_SUCCESS) return error;
    if (index < 0) return PMPI_T_category_get_num_events(number, events);
    give(0, events);
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_T_category_get_events(int number, int room, int indices[]) {
    int index = -1;
    if (const int error = look_up(category_numbers(), number, index); error != MPI_SUCCESS) return error;
    return index < 0 ? PMPI_T_category_get_events(number, room, indices) : MPI_SUCCESS;
}
#endif

}  // extern "C"

}  // namespace offpath::mpi::tools
