// For the generated calls with large counts: represents a count and a type by an int and a type. More
// elements than an int can count become one element of a type that has them all.
//
// The type ends with the object. MPI allows that: operations that were started with it continue. Any thread.
#pragma once

#include <mpi.h>

#include "runtime/runtime.h"

namespace offpath::mpi {

// A type of `count` contiguous elements, which the caller frees. At most 2^61 elements.
MPI_Datatype type_of_many(MPI_Count count, MPI_Datatype element);

class Narrowed {
  public:
    Narrowed(MPI_Count count, MPI_Datatype type);
    ~Narrowed();
    Narrowed(const Narrowed&) = delete;
    Narrowed& operator=(const Narrowed&) = delete;

    bool good() const { return good_; }
    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }

    // The displacement unit of a window. A unit beyond an int is an error, because no program can mean it.
    static int displacement_unit(MPI_Aint bytes);

  private:
    int count_ = 1;
    MPI_Datatype type_;
    MPI_Datatype made_ = MPI_DATATYPE_NULL;
    bool good_ = true;
};

// Calls the error handler and returns the result of the MPI call.
int refuse_count(MPI_Comm comm);
struct OfWindow {
    MPI_Win win;
};
int refuse_count(OfWindow window);

}  // namespace offpath::mpi
