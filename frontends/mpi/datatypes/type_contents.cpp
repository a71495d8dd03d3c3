#include "type_contents.h"

namespace offpath::mpi {
namespace {

struct Envelope {
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    int combiner = TypeContents::unknown;
};

Envelope envelope_of(MPI_Datatype type) {
    Envelope of;
#if MPI_VERSION >= 4
    const int result =
        PMPI_Type_get_envelope_c(type, &of.integers, &of.addresses, &of.counts, &of.types, &of.combiner);
#else
    int integers = 0;
    int addresses = 0;
    int types = 0;
    const int result = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &of.combiner);
    of.integers = integers;
    of.addresses = addresses;
    of.types = types;
#endif
    if (result != MPI_SUCCESS) of.combiner = TypeContents::unknown;
    return of;
}

}  // namespace

TypeContents::TypeContents(MPI_Datatype type) {
    const Envelope of = envelope_of(type);
    combiner_ = of.combiner;
    if (combiner_ == MPI_COMBINER_NAMED || combiner_ == unknown) return;
    integers_.resize(static_cast<std::size_t>(of.integers));
    addresses_.resize(static_cast<std::size_t>(of.addresses));
    counts_.resize(static_cast<std::size_t>(of.counts));
    types_.resize(static_cast<std::size_t>(of.types), MPI_DATATYPE_NULL);
#if MPI_VERSION >= 4
    const int result =
        PMPI_Type_get_contents_c(type, of.integers, of.addresses, of.counts, of.types, integers_.data(),
                                 addresses_.data(), counts_.data(), types_.data());
#else
    const int result = PMPI_Type_get_contents(type, static_cast<int>(of.integers),
                                              static_cast<int>(of.addresses), static_cast<int>(of.types),
                                              integers_.data(), addresses_.data(), types_.data());
#endif
    if (result == MPI_SUCCESS) return;
    combiner_ = unknown;
    types_.clear();
}

TypeContents::~TypeContents() {
    for (MPI_Datatype& part : types_) {
        if (part != MPI_DATATYPE_NULL && !is_predefined(part)) PMPI_Type_free(&part);
    }
}

TypeContents::Block TypeContents::block(std::size_t i) const {
    // After the number of blocks come their lengths and, with large counts, their displacements.
    if (counts_.empty()) return {integers_[i + 1], addresses_[i]};
    return {counts_[i + 1], counts_[types_.size() + i + 1]};
}

int combiner_of(MPI_Datatype type) {
    return envelope_of(type).combiner;
}

bool is_predefined(MPI_Datatype type) {
    switch (combiner_of(type)) {
        case MPI_COMBINER_NAMED:
        case MPI_COMBINER_F90_REAL:
        case MPI_COMBINER_F90_COMPLEX:
        case MPI_COMBINER_F90_INTEGER:
            return true;
        default:
            return false;
    }
}

}  // namespace offpath::mpi
