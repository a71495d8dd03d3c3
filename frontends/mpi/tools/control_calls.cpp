// MPI_T's calls for control variables: offpath's, and otherwise the host's MPI's.
#include <mpi.h>
#include <offpath/types.h>

#include <algorithm>

#include "control_variables.h"
#include "numbers.h"

namespace offpath::mpi::tools {
namespace {

constexpr std::size_t least_room = 1024;  // characters of a value

struct ControlHandle {
    const ControlVariable* variable;
    std::size_t room;  // with the zero at the end
};

std::mutex control_handles_mutex;
Handles<ControlHandle, MPI_T_cvar_handle> control_handles;

}  // namespace

void end_control_handles() {
    const std::lock_guard lock(control_handles_mutex);
    control_handles.remove_if([](const ControlHandle&) { return true; });
}

extern "C" {

OFFPATH_API int MPI_T_cvar_get_num(int* num) {
    return control_numbers().count(num);
}

OFFPATH_API int MPI_T_cvar_get_info(int number, char* name, int* name_length, int* verbosity,
                                    MPI_Datatype* type, MPI_T_enum* enumeration, char* meaning,
                                    int* meaning_length, int* bind, int* scope) {
    int index = -1;
    if (const int error = look_up(control_numbers(), number, index); error != MPI_SUCCESS) return error;
    if (index < 0)
        return PMPI_T_cvar_get_info(number, name, name_length, verbosity, type, enumeration, meaning,
                                    meaning_length, bind, scope);
    const ControlVariable& variable = control_variables()[static_cast<std::size_t>(index)];
    give(name_of(variable), name, name_length);
    give(std::string(variable.meaning), meaning, meaning_length);
    give<int>(MPI_T_VERBOSITY_USER_BASIC, verbosity);
    give<MPI_Datatype>(MPI_CHAR, type);
    give<MPI_T_enum>(MPI_T_ENUM_NULL, enumeration);
    give<int>(MPI_T_BIND_NO_OBJECT, bind);
    give<int>(variable.shared ? MPI_T_SCOPE_ALL_EQ : MPI_T_SCOPE_LOCAL, scope);
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_T_cvar_get_index(const char* name, int* number) {
    if (const int error = control_numbers().count(nullptr); error != MPI_SUCCESS) return error;
    const auto all = control_variables();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& one) { return name != nullptr && name_of(one) == name; });
    if (found != all.end()) {
        give(control_numbers().of_ours(static_cast<int>(found - all.begin())), number);
        return MPI_SUCCESS;
    }
    const int error = PMPI_T_cvar_get_index(name, number);
    if (error == MPI_SUCCESS && number != nullptr) *number = control_numbers().from_host(*number);
    return error;
}

OFFPATH_API int MPI_T_cvar_handle_alloc(int number, void* object, MPI_T_cvar_handle* handle, int* count) {
    int index = -1;
    if (const int error = look_up(control_numbers(), number, index); error != MPI_SUCCESS) return error;
    if (index < 0) return PMPI_T_cvar_handle_alloc(number, object, handle, count);
    const ControlVariable& variable = control_variables()[static_cast<std::size_t>(index)];
    const std::size_t room = std::max(least_room, value_of(variable).size() + 1);
    const std::lock_guard lock(control_handles_mutex);
    *handle = control_handles.add(new ControlHandle{&variable, room});
    give(static_cast<int>(room), count);
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
    {
        const std::lock_guard lock(control_handles_mutex);
        if (ControlHandle* const ours = handle != nullptr ? control_handles.find(*handle) : nullptr;
            ours != nullptr) {
            control_handles.remove(ours);
            *handle = MPI_T_CVAR_HANDLE_NULL;
            return MPI_SUCCESS;
        }
    }
    return PMPI_T_cvar_handle_free(handle);
}

OFFPATH_API int MPI_T_cvar_read(MPI_T_cvar_handle handle, void* buffer) {
    {
        const std::lock_guard lock(control_handles_mutex);
        if (const ControlHandle* const ours = control_handles.find(handle); ours != nullptr) {
            int room = static_cast<int>(ours->room);
            give(value_of(*ours->variable), static_cast<char*>(buffer), &room);
            return MPI_SUCCESS;
        }
    }
    return PMPI_T_cvar_read(handle, buffer);
}

OFFPATH_API int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void* buffer) {
    {
        const std::lock_guard lock(control_handles_mutex);
        if (const ControlHandle* const ours = control_handles.find(handle); ours != nullptr) {
            const auto* const text = static_cast<const char*>(buffer);
            return set_value(*ours->variable, std::string(text, strnlen(text, ours->room)))
                       ? MPI_SUCCESS
                       : MPI_T_ERR_CVAR_SET_NOT_NOW;
        }
    }
    return PMPI_T_cvar_write(handle, buffer);
}

}  // extern "C"

}  // namespace offpath::mpi::tools
