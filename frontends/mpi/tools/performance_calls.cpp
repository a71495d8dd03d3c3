// MPI_T's calls for performance variables: offpath's, and otherwise the host's MPI's. A session is the
// host's; handles of offpath's variables name it. A handle counts while it is started, from 0.
#include <mpi.h>
#include <offpath/types.h>

#include <algorithm>
#include <cstdint>

#include "numbers.h"
#include "performance_variables.h"
#include "runtime/parts.h"

namespace offpath::mpi::tools {
namespace {

struct PerformanceHandle {
    MPI_T_pvar_session session;
    const Counter* counter;
    bool started = false;
    std::uint64_t since = 0;   // the counter when it was started, or set
    std::uint64_t before = 0;  // what was counted before

    std::uint64_t value() const {
        const std::uint64_t now = started ? counter->read() : since;
        return before + (now > since ? now - since : 0);
    }
    void set(std::uint64_t value) {
        before = value;
        if (started) since = counter->read();
    }
    void start() {
        if (!started) since = counter->read();
        started = true;
    }
    void stop() {
        before = value();
        since = 0;
        started = false;
    }
};

std::mutex performance_handles_mutex;
Handles<PerformanceHandle, MPI_T_pvar_handle> performance_handles;

int class_of(const Counter& counter) {
    switch (counter.unit) {
        case Unit::bytes:
            return MPI_T_PVAR_CLASS_AGGREGATE;
        case Unit::nanoseconds:
            return MPI_T_PVAR_CLASS_TIMER;
        default:
            return MPI_T_PVAR_CLASS_COUNTER;
    }
}

void copy_out(const PerformanceHandle& handle, void* buffer) {
    if (handle.counter->unit == Unit::nanoseconds) {
        *static_cast<double*>(buffer) = static_cast<double>(handle.value()) * 1e-9;
    } else {
        *static_cast<unsigned long long*>(buffer) = handle.value();
    }
}

void copy_in(PerformanceHandle& handle, const void* buffer) {
    if (handle.counter->unit == Unit::nanoseconds) {
        handle.set(static_cast<std::uint64_t>(std::max(*static_cast<const double*>(buffer), 0.0) * 1e9));
    } else {
        handle.set(*static_cast<const unsigned long long*>(buffer));
    }
}

// For a call on one handle or all of a session: `ours` for offpath's, `host` for the host's.
template <typename Ours, typename Host>
int apply(MPI_T_pvar_session session, MPI_T_pvar_handle handle, Ours ours, Host host) {
    {
        const std::lock_guard lock(performance_handles_mutex);
        if (handle == MPI_T_PVAR_ALL_HANDLES) {
            performance_handles.each([&](PerformanceHandle& one) {
                if (one.session == session) ours(one);
            });
        } else if (PerformanceHandle* const one = performance_handles.find(handle); one != nullptr) {
            if (one->session != session) return MPI_T_ERR_INVALID_HANDLE;
            ours(*one);
            return MPI_SUCCESS;
        }
    }
    return host(session, handle);
}

}  // namespace

const std::vector<const Counter*>& performance_variables() {
    static const std::vector<const Counter*> all = [] {
        std::vector<const Counter*> made;
        for (const Part& part : parts) {
            if (part.counters == nullptr) continue;
            for (const Counter& counter : part.counters())
                made.push_back(&counter);
        }
        return made;
    }();
    return all;
}

void end_performance_handles() {
    const std::lock_guard lock(performance_handles_mutex);
    performance_handles.remove_if([](const PerformanceHandle&) { return true; });
}

extern "C" {

OFFPATH_API int MPI_T_pvar_get_num(int* num) {
    return performance_numbers().count(num);
}

OFFPATH_API int MPI_T_pvar_get_info(int number, char* name, int* name_length, int* verbosity, int* var_class,
                                    MPI_Datatype* type, MPI_T_enum* enumeration, char* meaning,
                                    int* meaning_length, int* bind, int* readonly, int* continuous,
                                    int* atomic) {
    int index = -1;
    if (const int error = look_up(performance_numbers(), number, index); error != MPI_SUCCESS) return error;
    if (index < 0)
        return PMPI_T_pvar_get_info(number, name, name_length, verbosity, var_class, type, enumeration,
                                    meaning, meaning_length, bind, readonly, continuous, atomic);
    const Counter& counter = *performance_variables()[static_cast<std::size_t>(index)];
    give("offpath_" + counter.name, name, name_length);
    give(counter.meaning, meaning, meaning_length);
    give<int>(MPI_T_VERBOSITY_USER_BASIC, verbosity);
    give(class_of(counter), var_class);
    give<MPI_Datatype>(counter.unit == Unit::nanoseconds ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG, type);
    give<MPI_T_enum>(MPI_T_ENUM_NULL, enumeration);
    give<int>(MPI_T_BIND_NO_OBJECT, bind);
    give(0, readonly);
    give(0, continuous);
    give(1, atomic);
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_T_pvar_get_index(const char* name, int var_class, int* number) {
    if (const int error = performance_numbers().count(nullptr); error != MPI_SUCCESS) return error;
    const auto& all = performance_variables();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Counter* one) {
        return name != nullptr && "offpath_" + one->name == name && class_of(*one) == var_class;
    });
    if (found != all.end()) {
        give(performance_numbers().of_ours(static_cast<int>(found - all.begin())), number);
        return MPI_SUCCESS;
    }
    const int error = PMPI_T_pvar_get_index(name, var_class, number);
    if (error == MPI_SUCCESS && number != nullptr) *number = performance_numbers().from_host(*number);
    return error;
}

OFFPATH_API int MPI_T_pvar_session_free(MPI_T_pvar_session* session) {
    if (session != nullptr) {
        const std::lock_guard lock(performance_handles_mutex);
        performance_handles.remove_if([&](const PerformanceHandle& one) { return one.session == *session; });
    }
    return PMPI_T_pvar_session_free(session);
}

OFFPATH_API int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int number, void* object,
                                        MPI_T_pvar_handle* handle, int* count) {
    int index = -1;
    if (const int error = look_up(performance_numbers(), number, index); error != MPI_SUCCESS) return error;
    if (index < 0) return PMPI_T_pvar_handle_alloc(session, number, object, handle, count);
    if (session == MPI_T_PVAR_SESSION_NULL) return MPI_T_ERR_INVALID_SESSION;
    const std::lock_guard lock(performance_handles_mutex);
    *handle = performance_handles.add(
        new PerformanceHandle{session, performance_variables()[static_cast<std::size_t>(index)]});
    give(1, count);
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
    {
        const std::lock_guard lock(performance_handles_mutex);
        PerformanceHandle* const ours = handle != nullptr ? performance_handles.find(*handle) : nullptr;
        if (ours != nullptr && ours->session != session) return MPI_T_ERR_INVALID_HANDLE;
        if (ours != nullptr) {
            performance_handles.remove(ours);
            *handle = MPI_T_PVAR_HANDLE_NULL;
            return MPI_SUCCESS;
        }
    }
    return PMPI_T_pvar_handle_free(session, handle);
}

OFFPATH_API int MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return apply(
        session, handle, [](PerformanceHandle& ours) { ours.start(); }, PMPI_T_pvar_start);
}

OFFPATH_API int MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return apply(
        session, handle, [](PerformanceHandle& ours) { ours.stop(); }, PMPI_T_pvar_stop);
}

OFFPATH_API int MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return apply(
        session, handle, [](PerformanceHandle& ours) { ours.set(0); }, PMPI_T_pvar_reset);
}

OFFPATH_API int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
    if (handle == MPI_T_PVAR_ALL_HANDLES) return MPI_T_ERR_INVALID_HANDLE;
    return apply(
        session, handle, [&](const PerformanceHandle& ours) { copy_out(ours, buffer); },
        [&](auto host_session, auto host_handle) {
            return PMPI_T_pvar_read(host_session, host_handle, buffer);
        });
}

OFFPATH_API int MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buffer) {
    if (handle == MPI_T_PVAR_ALL_HANDLES) return MPI_T_ERR_INVALID_HANDLE;
    return apply(
        session, handle, [&](PerformanceHandle& ours) { copy_in(ours, buffer); },
        [&](auto host_session, auto host_handle) {
            return PMPI_T_pvar_write(host_session, host_handle, buffer);
        });
}

OFFPATH_API int MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
    if (handle == MPI_T_PVAR_ALL_HANDLES) return MPI_T_ERR_INVALID_HANDLE;
    return apply(
        session, handle,
        [&](PerformanceHandle& ours) {
            copy_out(ours, buffer);
            ours.set(0);
        },
        [&](auto host_session, auto host_handle) {
            return PMPI_T_pvar_readreset(host_session, host_handle, buffer);
        });
}

}  // extern "C"

}  // namespace offpath::mpi::tools
