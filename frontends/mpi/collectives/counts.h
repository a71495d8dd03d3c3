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
    Counts(const long* numbers) : longs_(numbers) {}
    Counts(const long long* numbers) : long_longs_(numbers) {}

    std::int64_t operator[](std::integral auto i) const {
        if (ints_ != nullptr) return ints_[i];
        return longs_ != nullptr ? longs_[i] : long_longs_[i];
    }
    bool operator==(std::nullptr_t) const {
        return ints_ == nullptr && longs_ == nullptr && long_longs_ == nullptr;
    }

  private:
    // MPI libraries differ in which of the two MPI_Count is.
    const int* ints_ = nullptr;
    const long* longs_ = nullptr;
    const long long* long_longs_ = nullptr;
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
