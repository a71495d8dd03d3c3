// Converts the arguments of Fortran programs to those of C. The bindings that are generated from calls.txt
// use it.
//
// Each class stands for one argument. It is made from what Fortran passed and converts to what C needs. When
// it is destroyed, at the end of the call's full expression, it writes back what C wrote. MPI's own functions
// convert handles. Fortran's INTEGER is C's int, as the MPI libraries were configured. Any thread.
#pragma once

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <vector>

#include "runtime/error_handlers.h"

namespace offpath::mpi::fortran {

static_assert(sizeof(MPI_Fint) == sizeof(int));

// Converts the address of Fortran's MPI_BOTTOM, MPI_IN_PLACE and similar constants to C's.
void* choice(void* buffer);
bool is_in_place(const void* buffer);
const int* weights_of(const MPI_Fint* weights);

using mpi::stand_in_for_procedure;
using Procedure = void (*)();

// Lengths of arrays that only the communicator knows; 0 if it has no such thing.
int peers(MPI_Fint comm);
int sources(MPI_Fint comm);
int destinations(MPI_Fint comm);
int dimensions(MPI_Fint comm);

// MPI_Win_get_attr for Fortran, which gets attributes as values where C gets pointers to them.
void win_get_attr(const MPI_Fint* win, const MPI_Fint* keyval, void* value, MPI_Fint* flag, MPI_Fint* ierror);

// In mpi_f08, `ierror` is optional.
inline void report(int result, MPI_Fint* ierror) {
    if (ierror != nullptr) *ierror = result;
}

#define OFFPATH_HANDLE(name, type, nothing)    \
    struct name {                              \
        using C = type;                        \
        static C null() {                      \
            return nothing;                    \
        }                                      \
        static C to_c(MPI_Fint handle) {       \
            return MPI_##name##_f2c(handle);   \
        }                                      \
        static MPI_Fint to_fortran(C handle) { \
            return MPI_##name##_c2f(handle);   \
        }                                      \
    };
OFFPATH_HANDLE(Comm, MPI_Comm, MPI_COMM_NULL)
OFFPATH_HANDLE(Type, MPI_Datatype, MPI_DATATYPE_NULL)
OFFPATH_HANDLE(Op, MPI_Op, MPI_OP_NULL)
OFFPATH_HANDLE(Group, MPI_Group, MPI_GROUP_NULL)
OFFPATH_HANDLE(Info, MPI_Info, MPI_INFO_NULL)
OFFPATH_HANDLE(Win, MPI_Win, MPI_WIN_NULL)
OFFPATH_HANDLE(Request, MPI_Request, MPI_REQUEST_NULL)
OFFPATH_HANDLE(Message, MPI_Message, MPI_MESSAGE_NULL)
OFFPATH_HANDLE(Errhandler, MPI_Errhandler, MPI_ERRHANDLER_NULL)
#undef OFFPATH_HANDLE

struct OneUse {
    OneUse() = default;
    OneUse(const OneUse&) = delete;
    OneUse& operator=(const OneUse&) = delete;
};

template <typename Handle>
class Out : OneUse {
  public:
    explicit Out(MPI_Fint* fortran) : fortran_(fortran) {}
    ~Out() { *fortran_ = Handle::to_fortran(handle_); }
    operator typename Handle::C *() { return &handle_; }

  private:
    MPI_Fint* fortran_;
    typename Handle::C handle_ = Handle::null();
};

template <typename Handle>
class InOut : OneUse {
  public:
    explicit InOut(MPI_Fint* fortran)
        : fortran_(fortran), before_(Handle::to_c(*fortran)), handle_(before_) {}
    ~InOut() {
        if (handle_ != before_) *fortran_ = Handle::to_fortran(handle_);
    }
    operator typename Handle::C *() { return &handle_; }

  private:
    MPI_Fint* fortran_;
    typename Handle::C before_, handle_;
};

template <typename Handle>
class Array : OneUse {
  public:
    Array(const MPI_Fint* fortran, int count) {
        for (int i = 0; i < count; ++i)
            handles_.push_back(Handle::to_c(fortran[i]));
    }
    operator const typename Handle::C *() const { return handles_.data(); }

  private:
    std::vector<typename Handle::C> handles_;
};

template <typename Handle>
class InOutArray : OneUse {
  public:
    InOutArray(MPI_Fint* fortran, int count) : fortran_(fortran) {
        for (int i = 0; i < count; ++i)
            handles_.push_back(Handle::to_c(fortran[i]));
        before_ = handles_;
    }
    ~InOutArray() {
        for (std::size_t i = 0; i < handles_.size(); ++i) {
            if (handles_[i] != before_[i]) fortran_[i] = Handle::to_fortran(handles_[i]);
        }
    }
    operator typename Handle::C *() { return handles_.data(); }

  private:
    MPI_Fint* fortran_;
    std::vector<typename Handle::C> handles_, before_;
};

class LogicalOut : OneUse {
  public:
    explicit LogicalOut(MPI_Fint* fortran) : fortran_(fortran) {}
    ~LogicalOut() { *fortran_ = value_ != 0 ? 1 : 0; }
    operator int*() { return &value_; }

  private:
    MPI_Fint* fortran_;
    int value_ = 0;
};

class Logicals : OneUse {
  public:
    Logicals(const MPI_Fint* fortran, int count) {
        for (int i = 0; i < count; ++i)
            values_.push_back(fortran[i] != 0 ? 1 : 0);
    }
    operator const int*() const { return values_.data(); }

  private:
    std::vector<int> values_;
};

// Fortran counts from 1.
class IndexOut : OneUse {
  public:
    explicit IndexOut(MPI_Fint* fortran) : fortran_(fortran) {}
    ~IndexOut() { *fortran_ = value_ == MPI_UNDEFINED ? value_ : value_ + 1; }
    operator int*() { return &value_; }

  private:
    MPI_Fint* fortran_;
    int value_ = MPI_UNDEFINED;
};

// C writes into Fortran's array, and the number of indices into `count`.
class IndicesOut : OneUse {
  public:
    IndicesOut(MPI_Fint* fortran, const MPI_Fint* count) : fortran_(fortran), count_(count) {}
    ~IndicesOut() {
        for (int i = 0; i < *count_; ++i)  // runs not at all for MPI_UNDEFINED, which is negative
            ++fortran_[i];
    }
    operator int*() { return fortran_; }

  private:
    MPI_Fint* fortran_;
    const MPI_Fint* count_;
};

// The parts of a status that C does not write keep their values.
class StatusOut : OneUse {
  public:
    explicit StatusOut(MPI_Fint* fortran);
    ~StatusOut();
    operator MPI_Status*() { return fortran_ != nullptr ? &status_ : MPI_STATUS_IGNORE; }

  private:
    MPI_Fint* fortran_;  // null: MPI_STATUS_IGNORE
    MPI_Status status_{};
};

class StatusesOut : OneUse {
  public:
    StatusesOut(MPI_Fint* fortran, int count);
    ~StatusesOut();
    operator MPI_Status*() { return fortran_ != nullptr ? statuses_.data() : MPI_STATUSES_IGNORE; }

  private:
    MPI_Fint* fortran_;
    std::vector<MPI_Status> statuses_;
};

}  // namespace offpath::mpi::fortran
