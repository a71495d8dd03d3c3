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
