#include "numbers.h"

#include <offpath/types.h>

#include <algorithm>

#include "control_variables.h"
#include "performance_variables.h"

namespace offpath::mpi::tools {
namespace {

std::mutex users_mutex;
int users = 0;  // calls of MPI_T_init_thread without an MPI_T_finalize

}  // namespace

int Numbers::count(int* all) {
    int host = 0;
    const int error = host_num_(&host);
    if (error != MPI_SUCCESS) return error;
    const std::lock_guard lock(mutex_);
    if (first_ < 0) first_ = host;
    if (all != nullptr) *all = host + ours_;
    return MPI_SUCCESS;
}

int look_up(Numbers& numbers, int& number, int& index) {
    const int error = numbers.count(nullptr);
    if (error != MPI_SUCCESS) return error;
    index = numbers.ours(number);
    number = numbers.to_host(number);
    return MPI_SUCCESS;
}

void give(const std::string& text, char* buffer, int* length) {
    if (length == nullptr) return;
    const int whole = static_cast<int>(text.size()) + 1;
    if (buffer != nullptr && *length > 0) {
        const auto copied = static_cast<std::size_t>(std::min(*length, whole) - 1);
        std::memcpy(buffer, text.data(), copied);
        buffer[copied] = '\0';
    }
    *length = whole;
}

Numbers& control_numbers() {
    static Numbers numbers(PMPI_T_cvar_get_num, static_cast<int>(control_variables().size()));
    return numbers;
}

Numbers& performance_numbers() {
    static Numbers numbers(PMPI_T_pvar_get_num, static_cast<int>(performance_variables().size()));
    return numbers;
}

Numbers& category_numbers() {
    static Numbers numbers(PMPI_T_category_get_num, 1);
    return numbers;
}

extern "C" {

OFFPATH_API int MPI_T_init_thread(int required, int* provided) {
    const int error = PMPI_T_init_thread(required, provided);
    const std::lock_guard lock(users_mutex);
    if (error == MPI_SUCCESS) ++users;
    return error;
}

OFFPATH_API int MPI_T_finalize() {
    {
        const std::lock_guard lock(users_mutex);
        if (users > 0 && --users == 0) {
            end_control_handles();
            end_performance_handles();
        }
    }
    return PMPI_T_finalize();
}

}  // extern "C"

}  // namespace offpath::mpi::tools
