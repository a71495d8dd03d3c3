#include "large_counts.h"

#include <array>
#include <climits>

#include "datatypes.h"

namespace offpath::mpi {
namespace {

constexpr int block = 1 << 30;  // elements

}  // namespace

MPI_Datatype type_of_many(MPI_Count count, MPI_Datatype element) {
    std::array<MPI_Datatype, 2> parts{};
    MPI_Datatype all = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(block, element, &parts[0]);
    parts[1] = element;
    const std::array<int, 2> counts{static_cast<int>(count / block), static_cast<int>(count % block)};
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_extent(element, &lower, &extent);
    const std::array<MPI_Aint, 2> places{0, counts[0] * extent * block};
    PMPI_Type_create_struct(2, counts.data(), places.data(), parts.data(), &all);
    PMPI_Type_free(&parts[0]);
    PMPI_Type_commit(&all);
    return all;
}

Narrowed::Narrowed(MPI_Count count, MPI_Datatype type) : type_(type) {
    if (count <= INT_MAX || type == MPI_DATATYPE_NULL) {
        count_ = count < 0 ? -1 : static_cast<int>(count < INT_MAX ? count : INT_MAX);
        return;
    }
    const TypeUse use = use_type(type);
    good_ = use.usable && count / block <= INT_MAX;
    if (!good_) return;
    type_ = made_ = type_of_many(count, type);
    if (!use.contiguous()) set_parts(made_, type, static_cast<std::size_t>(count));
}

Narrowed::~Narrowed() {
    if (made_ != MPI_DATATYPE_NULL) free_type(&made_);
}

int Narrowed::displacement_unit(MPI_Aint bytes) {
    return bytes > 0 && bytes <= INT_MAX ? static_cast<int>(bytes) : 0;
}

int refuse_count(MPI_Comm comm) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
}

int refuse_count(OfWindow window) {
    PMPI_Win_call_errhandler(window.win, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
}

}  // namespace offpath::mpi
