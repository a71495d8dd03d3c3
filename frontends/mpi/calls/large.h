// What the calls with large counts that are generated from calls.txt use: a count and its type as an int and
// a type. More elements than an int counts are one element of a type of them all.
//
// The type ends with the object; what was started with it goes on, as MPI has it. Any thread.
#pragma once

#include <mpi.h>

#include "../runtime.h"

namespace offpath::mpi {

// `count` elements one after the other; to be freed. Not more than 2^61.
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

    // Of a window. One beyond an int is wrong, as no program can mean it.
    static int displacement_unit(MPI_Aint bytes);

  private:
    int count_ = 1;
    MPI_Datatype type_;
    MPI_Datatype made_ = MPI_DATATYPE_NULL;
    bool good_ = true;
};

// Calls the error handler and returns what the MPI call returns.
int refuse_count(MPI_Comm comm);
struct OfWindow {
    MPI_Win win;
};
int refuse_count(OfWindow window);

}  // namespace offpath::mpi
