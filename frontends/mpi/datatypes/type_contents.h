// How a derived datatype was constructed, according to the host's MPI. It covers constructors with int counts
// and those with large counts (MPI_Type_vector_c and so on), which MPI_Type_get_envelope refuses.
//
// Threads: any; each object belongs to its thread.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::mpi {

class TypeContents {
  public:
    explicit TypeContents(MPI_Datatype type);
    ~TypeContents();
    TypeContents(const TypeContents&) = delete;
    TypeContents& operator=(const TypeContents&) = delete;

    // MPI_COMBINER_NAMED for predefined types. `unknown`: the host's MPI does not report it. Nothing may then
    // be concluded from the contents, and the host's MPI packs the type.
    static constexpr int unknown = -1;
    int combiner() const { return combiner_; }
    // They are released with this object.
    const std::vector<MPI_Datatype>& types() const { return types_; }

    // Block `i` of a structure, of types()[i].
    struct Block {
        std::int64_t count;
        std::int64_t place;
    };
    Block block(std::size_t i) const;

    // The arguments of the constructor in their order. Constructors with large counts have most of them in
    // another list.
    bool has_large_counts() const { return !counts_.empty(); }
    std::int64_t integer(std::size_t i) const { return integers_[i]; }
    std::int64_t last_integer() const { return integers_.back(); }
    // Argument `i` of those that are numbers.
    std::int64_t number(std::size_t i) const { return has_large_counts() ? counts_[i] : integers_[i]; }
    // A displacement or stride: argument `i`, unless the constructor counts bytes. Then it is address `k`.
    std::int64_t place(std::size_t i, std::size_t k) const {
        return !has_large_counts() && !addresses_.empty() ? addresses_[k] : number(i);
    }
    // Number `i` of those that describe an array, which come after the number of its dimensions.
    std::int64_t array_number(std::size_t i) const {
        return has_large_counts() ? counts_[i] : integers_[1 + i];
    }

  private:
    int combiner_ = unknown;
    std::vector<int> integers_;
    std::vector<MPI_Aint> addresses_;
    std::vector<MPI_Count> counts_;  // of a constructor with large counts
    std::vector<MPI_Datatype> types_;
};

// The combiner alone, or TypeContents::unknown.
int combiner_of(MPI_Datatype type);
// Whether the type is named, or was selected by its precision. Such types are never freed.
bool is_predefined(MPI_Datatype type);

}  // namespace offpath::mpi
