#include "error_handlers.h"

#include <dlfcn.h>
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

// A callback has no argument that tells which handler it stands for, so there is one function for each
// handler. Slots are never released: a program has few handlers, and MPI may call one after its handle was
// freed.
struct HandlerSlot {
    std::atomic<void*> function{nullptr};
    bool fortran = false;
};
std::array<HandlerSlot, most_handlers> handler_slots;
std::mutex handler_slots_mutex;  // so that only one thread takes a slot

enum class Language { c, fortran, cxx };

struct MetError {
    void* function;
    Language language;
    MPI_Comm comm;
    int code;
    const char* message;
};
thread_local std::vector<MetError> held_errors;

#if defined(MPICH_NUMVERSION) && !defined(MPI_ABI)
// The type of a function of MPICH's C++ bindings. The function makes an object from the handle of a
// communicator, file or window, and calls a C++ handler with that object.
using CxxCaller = void(int kind, int* handle, int* code, void (*function)());
constexpr int of_communicator = 0;
std::atomic<CxxCaller*> cxx_caller{nullptr};
#endif

void call(const MetError& error) {
    MPI_Comm comm = error.comm;
    int code = error.code;
#if defined(MPICH_NUMVERSION) && !defined(MPI_ABI)
    if (error.language == Language::cxx) {
        cxx_caller.load(std::memory_order_acquire)(of_communicator, &comm, &code,
                                                   reinterpret_cast<void (*)()>(error.function));
        return;
    }
#endif
#ifndef MPI_ABI  // the standard's ABI leaves Fortran to separate libraries
    if (error.language == Language::fortran) {
        MPI_Fint handle = PMPI_Comm_c2f(comm);
        reinterpret_cast<void (*)(MPI_Fint*, MPI_Fint*)>(error.function)(&handle, &code);
        return;
    }
#endif
    reinterpret_cast<MPI_Comm_errhandler_function*>(error.function)(&comm, &code, error.message, nullptr);
}

void meet_error(const MetError& error) {
    if (handlers_held == 0) return call(error);
    held_errors.push_back(error);
    errors_wait = true;
}

template <std::size_t I>
void stand_in(MPI_Comm* comm, int* code, ...) {
    MetError error{handler_slots[I].function.load(std::memory_order_acquire),
                   handler_slots[I].fortran ? Language::fortran : Language::c, *comm, *code, nullptr};
#ifdef OPEN_MPI
    std::va_list more;
    va_start(more, code);
    error.message = va_arg(more, const char*);  // the name of the call, which lives as long as the program
    va_end(more);
#endif
    meet_error(error);
}

template <std::size_t... I>
constexpr std::array<MPI_Comm_errhandler_function*, most_handlers> make_stand_ins(std::index_sequence<I...>) {
    return {stand_in<I>...};
}
constexpr auto stand_ins = make_stand_ins(std::make_index_sequence<most_handlers>());

MPI_Comm_errhandler_function* find_stand_in(void* function, bool fortran) {
    const std::lock_guard lock(handler_slots_mutex);
    for (std::size_t i = 0; i < most_handlers; ++i) {
        HandlerSlot& slot = handler_slots[i];
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

// Returns the slot that a function stands for, or null for other functions.
HandlerSlot* slot_of(MPI_Comm_errhandler_function* function) {
    for (std::size_t i = 0; i < most_handlers; ++i) {
        if (stand_ins[i] == function) return &handler_slots[i];
    }
    return nullptr;
}

#if defined(MPICH_NUMVERSION) && !defined(MPI_ABI)
// MPICH calls C++ handlers through this function. The original function would call a stand-in with an object,
// and the stand-in would take the object for a handle.
void call_cxx_handler(int kind, int* handle, int* code, void (*function)()) {
    HandlerSlot* slot = slot_of(reinterpret_cast<MPI_Comm_errhandler_function*>(function));
    if (kind != of_communicator || slot == nullptr) {
        cxx_caller.load(std::memory_order_acquire)(kind, handle, code, function);
        return;
    }
    meet_error({slot->function.load(std::memory_order_acquire), Language::cxx, *handle, *code, nullptr});
}
#endif

}  // namespace

void call_held_handlers() {
    const std::vector<MetError> errors = std::exchange(held_errors, {});
    errors_wait = false;
    for (const MetError& error : errors)
        call(error);
}

MPI_Comm_errhandler_function* stand_in_for_handler(MPI_Comm_errhandler_function* function) {
    if (function == nullptr || slot_of(function) != nullptr) return function;
    MPI_Comm_errhandler_function* found = find_stand_in(reinterpret_cast<void*>(function), false);
    return found != nullptr ? found : function;
}

MPI_Comm_errhandler_function* stand_in_for_procedure(void (*procedure)()) {
    MPI_Comm_errhandler_function* found = find_stand_in(reinterpret_cast<void*>(procedure), true);
    if (found == nullptr) {
        warn(Code::limit, "more procedures are error handlers than this library has room for");
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

#if defined(MPICH_NUMVERSION) && !defined(MPI_ABI)
// With this call of MPICH's library, MPICH's C++ bindings declare that a new handler is a C++ one.
extern "C" OFFPATH_API void MPII_Errhandler_set_cxx(MPI_Errhandler handler, CxxCaller* caller) {
    using Original = void(MPI_Errhandler, CxxCaller*);
    static auto* const original = reinterpret_cast<Original*>(dlsym(RTLD_NEXT, "MPII_Errhandler_set_cxx"));
    cxx_caller.store(caller, std::memory_order_release);  // acquired where a handler is called
    original(handler, call_cxx_handler);
}
#endif
