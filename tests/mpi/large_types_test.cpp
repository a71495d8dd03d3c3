// MPI 4: datatypes made by constructors with large counts (MPI_Type_vector_c and so on) have the same meaning
// as those made with int counts, in every kind of call.
#include <algorithm>
#include <array>
#include <string>

#include "check.h"

namespace {

constexpr int elements = 700;  // of six ints each

struct Type {
    std::string name;
    MPI_Datatype type;
    int span;  // ints from one element to the next
};

std::vector<Type> make_types() {
    std::vector<Type> types;
    const auto add = [&](const char* name, MPI_Datatype type, int span) {
        MPI_Type_commit(&type);
        types.push_back({name, type, span});
    };
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Datatype outer = MPI_DATATYPE_NULL;
    MPI_Type_contiguous_c(6, MPI_INT, &made);
    add("contiguous_c", made, 6);
    MPI_Type_create_resized_c(made, 0, 10 * MPI_Count{sizeof(int)}, &outer);
    add("create_resized_c of contiguous_c", outer, 10);
    MPI_Type_contiguous(1, made, &outer);
    add("contiguous of contiguous_c", outer, 6);
    MPI_Type_vector_c(3, 2, 4, MPI_INT, &made);
    add("vector_c", made, 10);
    const MPI_Count lengths[] = {2, 1, 3};
    const MPI_Count places[] = {5, 0, 2};
    MPI_Type_indexed_c(3, lengths, places, MPI_INT, &made);
    add("indexed_c", made, 7);
    const MPI_Count blocks[] = {3, 3};
    const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
    const MPI_Count swapped[] = {3 * MPI_Count{sizeof(int)}, 0};
    MPI_Type_create_struct_c(2, blocks, swapped, ints, &made);
    add("create_struct_c, not in order", made, 6);
    const MPI_Count in_order[] = {0, 3 * MPI_Count{sizeof(int)}};
    MPI_Type_create_struct_c(2, blocks, in_order, ints, &made);
    add("create_struct_c", made, 6);
    MPI_Type_create_hvector_c(2, 3, 5 * MPI_Count{sizeof(int)}, MPI_INT, &made);
    add("create_hvector_c", made, 8);
    const MPI_Count sizes[] = {3, 4}, subsizes[] = {3, 2}, starts[] = {0, 1};
    MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &made);
    add("create_subarray_c", made, 12);
    return types;
}

std::vector<int> packed(const std::vector<int>& data, const Type& type) {
    std::vector<int> ints(6 * elements);
    const int bytes = static_cast<int>(ints.size() * sizeof(int));
    int position = 0;
    PMPI_Pack(data.data(), elements, type.type, ints.data(), bytes, &position, MPI_COMM_WORLD);
    return ints;
}

std::vector<int> filled(const Type& type, int seed) {
    return check::pattern(static_cast<std::size_t>(type.span * elements), seed);
}

void broadcast(const Type& type) {
    std::vector<int> data = filled(type, 1);
    std::vector<int> expected = data;
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Bcast(expected.data(), elements, type.type, 0, MPI_COMM_WORLD);
    MPI_Ibcast(data.data(), elements, type.type, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(data == expected, "ibcast of {}", type.name);
}

// The other end describes the same bytes with ints.
void message(const Type& type) {
    const int size = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const std::vector<int> out = filled(type, 2);
    const std::vector<int> sent = packed(out, type);
    std::vector<int> in(sent.size()), expected(sent.size());
    const int next = (rank + 1) % size;
    const int previous = (rank + size - 1) % size;
    PMPI_Sendrecv(sent.data(), 6 * elements, MPI_INT, next, 0, expected.data(), 6 * elements, MPI_INT,
                  previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out.data(), elements, type.type, next, 0, in.data(), 6 * elements, MPI_INT, previous, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check::that(in == expected, "send of {}", type.name);
    std::vector<int> back = filled(type, 3);
    MPI_Sendrecv(sent.data(), 6 * elements, MPI_INT, next, 0, back.data(), elements, type.type, previous, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check::that(packed(back, type) == expected, "receive of {}", type.name);
}

// Each rank adds to the memory of the next one.
void accumulate(const Type& type) {
    const int size = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    std::vector<int> memory(static_cast<std::size_t>(type.span * elements), 5);
    const std::vector<int> ones(6 * elements, rank + 1);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(ones.data(), 6 * elements, MPI_INT, (rank + 1) % size, 0, elements, type.type, MPI_SUM,
                   win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    const int added = (rank + size - 1) % size + 1;
    const std::vector<int> result = packed(memory, type);
    check::that(std::ranges::count(result, 5 + added) == 6 * elements, "accumulate to {}", type.name);
    const auto changed = std::ranges::count_if(memory, [](int value) { return value != 5; });
    check::that(changed == 6 * elements, "accumulate to {} changed {} ints", type.name, changed);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (Type& type : make_types()) {
        broadcast(type);
        message(type);
        accumulate(type);
        MPI_Type_free(&type.type);
    }
    return check::finish();
}
