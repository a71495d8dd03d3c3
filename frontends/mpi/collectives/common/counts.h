// Counts: an array of counts or displacements as MPI passes it: of int or, in calls with large counts, of
// MPI_Count or MPI_Aint. Borrowed; a value. It can be passed on to a call that takes the same kind.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

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

    operator const int*() const { return ints_; }
    operator const long*() const { return longs_; }
    operator const long long*() const { return long_longs_; }

    // A copy of the same kind, in memory that `owner` keeps.
    Counts copy(int count, std::vector<std::shared_ptr<void>>& owner) const {
        if (ints_ != nullptr) return copy_of(ints_, count, owner);
        return longs_ != nullptr ? copy_of(longs_, count, owner) : copy_of(long_longs_, count, owner);
    }

  private:
    template <typename Number>
    static Counts copy_of(const Number* numbers, int count, std::vector<std::shared_ptr<void>>& owner) {
        auto made = std::make_shared<std::vector<Number>>(numbers, numbers + count);
        owner.push_back(made);
        return made->data();
    }

    // MPI libraries differ in which of the two MPI_Count is.
    const int* ints_ = nullptr;
    const long* longs_ = nullptr;
    const long long* long_longs_ = nullptr;
};

// Names of the parameter types in the definition of a call, for both of its forms.
namespace int_counts {
using Count = int;
using Displacement = int;
}  // namespace int_counts
namespace large_counts {
using Count = MPI_Count;
using Displacement = MPI_Aint;
}  // namespace large_counts

}  // namespace offpath::mpi
