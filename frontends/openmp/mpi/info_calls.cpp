// Info objects of regions, and the key of communicators: REMOTE_DEST_HETERO says that the other end of
// messages is a host.
#include "mpi/runtime/hetero_key.h"
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/handles.h"
#include "openmp/mpi/info.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace offpath::region_mpi {
namespace {

Handles<MPI_Info, Info, true> handles;

Info& info_of(MPI_Info handle) {
    Info* const info =
        handle != MPI_INFO_NULL && own(handle) != MPI_INFO_NULL ? handles.find(handle) : nullptr;
    if (info == nullptr) throw MpiError{MPI_ERR_INFO, "it is no info object that a region has made"};
    return *info;
}

}  // namespace

std::optional<bool> key_in(MPI_Info handle) {
    if (handle == MPI_INFO_NULL || own(handle) == MPI_INFO_NULL) return std::nullopt;
    const Info& info = info_of(handle);
    const auto found = info.find(mpi::hetero_key);
    if (found == info.end()) return std::nullopt;
    const std::optional<bool> value = mpi::hetero_value(found->second);
    if (!value)
        throw MpiError{MPI_ERR_INFO_VALUE, std::string(mpi::hetero_key) + " is '" + found->second +
                                               "'; 0, 1, false and true are accepted"};
    return value;
}

}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Info_create(MPI_Info* info) {
    return in_call("MPI_Info_create", MPI_COMM_WORLD, [&](Communicator&) { *info = handles.make(new Info); });
}

OFFPATH_EXPORT int MPI_Info_free(MPI_Info* info) {
    return in_call("MPI_Info_free", MPI_COMM_WORLD, [&](Communicator&) {
        delete &info_of(*info);
        handles.forget(*info);
        *info = MPI_INFO_NULL;
    });
}

OFFPATH_EXPORT int MPI_Info_set(MPI_Info info, const char* key, const char* value) {
    return in_call("MPI_Info_set", MPI_COMM_WORLD, [&](Communicator&) { info_of(info)[key] = value; });
}

OFFPATH_EXPORT int MPI_Info_delete(MPI_Info info, const char* key) {
    return in_call("MPI_Info_delete", MPI_COMM_WORLD, [&](Communicator&) {
        if (info_of(info).erase(key) == 0)
            throw MpiError{MPI_ERR_INFO_NOKEY, std::string("there is no key ") + key};
    });
}

OFFPATH_EXPORT int MPI_Info_get(MPI_Info info, const char* key, int length, char* value, int* flag) {
    return in_call("MPI_Info_get", MPI_COMM_WORLD, [&](Communicator&) {
        const Info& all = info_of(info);
        const auto found = all.find(key);
        *flag = found != all.end() ? 1 : 0;
        if (*flag == 0) return;
        if (length < 0) throw MpiError{MPI_ERR_ARG, "the length is negative"};
        const std::size_t bytes = std::min(found->second.size(), static_cast<std::size_t>(length));
        std::memcpy(value, found->second.data(), bytes);
        value[bytes] = '\0';
    });
}

OFFPATH_EXPORT int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
    return in_call("MPI_Comm_dup_with_info", comm, [&](Communicator& parent) {
        const std::optional<bool> key = key_in(info);
        *made = duplicate(parent);
        communicator_of(*made).to_hosts = key.value_or(false);
    });
}

OFFPATH_EXPORT int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
    return in_call("MPI_Comm_set_info", comm, [&](Communicator& communicator) {
        if (const std::optional<bool> key = key_in(info)) communicator.to_hosts = *key;
    });
}
