// Datatypes that a front end might handle wrongly. Each describes six ints per element (except "int", with
// one), so any two can be at the two ends of one transfer.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace check {

struct Type {
    std::string name;
    MPI_Datatype type;
    int ints_an_element;
    int span;  // ints from one element to the next
};

inline std::vector<Type> make_types() {
    std::vector<Type> types = {{"int", MPI_INT, 1, 1}};
    const auto add = [&](const char* name, MPI_Datatype type, int span) {
        PMPI_Type_commit(&type);
        types.push_back({name, type, 6, span});
    };
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Datatype inner = MPI_DATATYPE_NULL;

    PMPI_Type_contiguous(6, MPI_INT, &made);
    add("contiguous", made, 6);
    PMPI_Type_dup(made, &inner);
    add("dup", inner, 6);
    PMPI_Type_create_resized(made, 0, 10 * static_cast<MPI_Aint>(sizeof(int)), &inner);
    add("resized", inner, 10);
    PMPI_Type_vector(3, 2, 4, MPI_INT, &made);
    add("vector", made, 10);

    const int lengths[] = {2, 1, 3};
    const int places[] = {5, 0, 2};
    PMPI_Type_indexed(3, lengths, places, MPI_INT, &made);
    add("indexed", made, 7);
    // The size equals the extent. Every int occurs once, but out of order.
    const int halves[] = {3, 3};
    const int swapped[] = {3, 0};
    PMPI_Type_indexed(2, halves, swapped, MPI_INT, &made);
    add("swapped", made, 6);

    const int counts[] = {4, 2};
    const MPI_Aint offsets[] = {4 * static_cast<MPI_Aint>(sizeof(int)), 0};
    const MPI_Datatype parts[] = {MPI_INT, MPI_INT};
    PMPI_Type_create_struct(2, counts, offsets, parts, &made);
    add("struct", made, 8);
    return types;
}

inline void free_types(std::vector<Type>& types) {
    for (Type& type : types) {
        if (type.type != MPI_INT) MPI_Type_free(&type.type);
    }
    types.clear();
}

}  // namespace check
