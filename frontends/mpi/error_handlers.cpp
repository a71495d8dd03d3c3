#include "error_handlers.h"

#include <offpath/types.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t most_handlers = 128;

// A function of ours has no argument to tell for whom it stands, so there is one for each. They are never
// given back: a program has few handlers, and MPI may call one after its handle was freed.
struct Slot {
    std::atomic<void*> function{nullptr};
    bool fortran = false;
};
std::array<Slot, most_handlers> slots;
std::mutex mutex;  // guards that a slot is taken once

struct MetError {
    void* function;
    bool fortran;
    MPI_Comm comm;
    int code;
    const char* message;
};
thread_local std::vector<MetError> held_errors;

void call(const MetError& error) {
    MPI_Comm comm = error.comm;
    int code = error.code;
#ifndef MPI_ABI  // which leaves Fortran to libraries of its own
    if (error.fortran) {
        MPI_Fint handle = PMPI_Comm_c2f(comm);
        reinterpret_cast<void (*)(MPI_Fint*, MPI_Fint*)>(error.function)(&handle, &code);
        return;
    }
#endif
    reinterpret_cast<MPI_Comm_errhandler_function*>(error.function)(&comm, &code, error.message, nullptr);
}

void meet(const MetError& error) {
    if (handlers_held == 0) return call(error);
    held_errors.push_back(error);
    errors_wait = true;
}

template <std::size_t I>
void stand_in(MPI_Comm* comm, int* code, ...) {
    MetError error{slots[I].function.load(std::memory_order_acquire), slots[I].fortran, *comm, *code,
                   nullptr};
#ifdef OPEN_MPI
    std::va_list more;
    va_start(more, code);
    error.message = va_arg(more, const char*);  // the name of the call, and lives as long as the program
    va_end(more);
#endif
    meet(error);
}

template <std::size_t... I>
constexpr std::array<MPI_Comm_errhandler_function*, most_handlers> make_stand_ins(std::index_sequence<I...>) {
    return {stand_in<I>...};
}
constexpr auto stand_ins = make_stand_ins(std::make_index_sequence<most_handlers>());

MPI_Comm_errhandler_function* find_stand_in(void* function, bool fortran) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < most_handlers; ++i) {
        Slot& slot = slots[i];
        void* taken_by = slot.function.load(std::memory_order_relaxed);
        if (taken_by == nullptr) {
            slot.fortran = fortran;
            slot.function.store(function, std::memory_order_release);
        } else if (taken_by != function || slot.fortran != fortran) {
            continue;
        }
        return stand_ins[i];
    }
    return nullptr;
}

bool is_stand_in(MPI_Comm_errhandler_function* function) {
    for (MPI_Comm_errhandler_function* one : stand_ins) {
        if (one == function) return true;
    }
    return false;
}

}  // namespace

void call_held_handlers() {
    const std::vector<MetError> errors = std::exchange(held_errors, {});
    errors_wait = false;
    for (const MetError& error : errors)
        call(error);
}

MPI_Comm_errhandler_function* stand_in_for_handler(MPI_Comm_errhandler_function* function) {
    if (function == nullptr || is_stand_in(function)) return function;
    MPI_Comm_errhandler_function* found = find_stand_in(reinterpret_cast<void*>(function), false);
    return found != nullptr ? found : function;
}

MPI_Comm_errhandler_function* stand_in_for_procedure(void (*procedure)()) {
    MPI_Comm_errhandler_function* found = find_stand_in(reinterpret_cast<void*>(procedure), true);
    if (found == nullptr) {
        say("more procedures are error handlers than this library has room for");
        PMPI_Abort(MPI_COMM_WORLD, 2);
    }
    return found;
}

}  // namespace offpath::mpi

using namespace offpath::mpi;

extern "C" OFFPATH_API int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function* function,
                                                      MPI_Errhandler* handler) {
    if (!active()) return PMPI_Comm_create_errhandler(function, handler);
    return PMPI_Comm_create_errhandler(stand_in_for_handler(function), handler);
}
