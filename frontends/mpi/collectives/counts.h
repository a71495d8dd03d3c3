// Counts: an array of counts or displacements as MPI passes it, of int or, in the calls with large counts, of
// MPI_Count or MPI_Aint. Borrowed; a value.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace offpath::mpi {

class Counts {
  public:
    Counts(std::nullptr_t) {}
    Counts(const int* numbers) : ints_(numbers) {}
    Counts(const std::int64_t* numbers) : large_(numbers) {}

    std::int64_t operator[](std::integral auto i) const { return large_ != nullptr ? large_[i] : ints_[i]; }
    bool operator==(std::nullptr_t) const { return ints_ == nullptr && large_ == nullptr; }

  private:
    const int* ints_ = nullptr;
    const std::int64_t* large_ = nullptr;
};

// What the calls' parameters are called where a call is defined, in both of its forms.
namespace int_counts {
using Count = int;
using Displacement = int;
}  // namespace int_counts
namespace large_counts {
using Count = MPI_Count;
using Displacement = MPI_Aint;
}  // namespace large_counts

}  // namespace offpath::mpi
