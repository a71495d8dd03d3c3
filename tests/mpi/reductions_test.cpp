// Reductions of every type and operation that MPI defines, compared with the host's MPI; a user-defined one,
// which stays on the host; in place, by root, on several communicators, in all forms. Operands are small
// whole numbers, so every order of operands has the same result.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <numeric>

#include "forms.h"

namespace {

using check::Bytes;

enum Kind : unsigned {
    c_integer = 1,
    fortran_integer = 2,
    floating = 4,
    logical = 8,
    complex = 16,
    byte = 32,
    pair = 64
};

struct Type {
    std::string name;
    MPI_Datatype mpi;
    unsigned kinds;
    std::size_t extent;
    std::function<void(std::byte* element, int value)> set;
    // Compares values, because padding is arbitrary and the sign of a zero depends on the order of operands.
    std::function<bool(const std::byte* a, const std::byte* b)> same;
};

struct Op {
    std::string name;
    MPI_Op mpi;
    unsigned kinds;
};

template <typename T>
bool same_value(const std::byte* a, const std::byte* b) {
    T one, other;
    std::memcpy(&one, a, sizeof one);
    std::memcpy(&other, b, sizeof other);
    return one == other;
}

template <typename T>
Type number(const char* name, MPI_Datatype mpi, unsigned kinds) {
    return {name,
            mpi,
            kinds,
            sizeof(T),
            [](std::byte* element, int value) {
                const T number = static_cast<T>(value);
                std::memcpy(element, &number, sizeof number);
            },
            same_value<T>};
}

template <typename T>
Type complex_number(const char* name, MPI_Datatype mpi) {
    return {name,
            mpi,
            complex,
            sizeof(std::complex<T>),
            [](std::byte* element, int value) {
                const std::complex<T> number(static_cast<T>(value - 1), static_cast<T>(value % 2));
                std::memcpy(element, &number, sizeof number);
            },
            same_value<std::complex<T>>};
}

template <typename Value, typename Index>
Type value_and_index(const char* name, MPI_Datatype mpi) {
    struct Both {
        Value value;
        Index index;
    };
    return {name,
            mpi,
            pair,
            sizeof(Both),
            [](std::byte* element, int value) {
                Both both{};
                both.value = static_cast<Value>(value % 3);
                both.index = static_cast<Index>((value * 7 + 3) % 5);
                std::memcpy(element, &both, sizeof both);
            },
            [](const std::byte* a, const std::byte* b) {
                constexpr std::size_t index = offsetof(Both, index);
                return same_value<Value>(a, b) && same_value<Index>(a + index, b + index);
            }};
}

std::vector<Type> all_types() {
    return {
        number<signed char>("signed char", MPI_SIGNED_CHAR, c_integer),
        number<char>("char", MPI_CHAR, c_integer),
        number<unsigned char>("unsigned char", MPI_UNSIGNED_CHAR, c_integer),
        number<short>("short", MPI_SHORT, c_integer),
        number<unsigned short>("unsigned short", MPI_UNSIGNED_SHORT, c_integer),
        number<int>("int", MPI_INT, c_integer),
        number<unsigned>("unsigned", MPI_UNSIGNED, c_integer),
        number<long>("long", MPI_LONG, c_integer),
        number<unsigned long>("unsigned long", MPI_UNSIGNED_LONG, c_integer),
        number<long long>("long long", MPI_LONG_LONG, c_integer),
        number<unsigned long long>("unsigned long long", MPI_UNSIGNED_LONG_LONG, c_integer),
        number<std::int8_t>("int8", MPI_INT8_T, c_integer),
        number<std::uint16_t>("uint16", MPI_UINT16_T, c_integer),
        number<std::int32_t>("int32", MPI_INT32_T, c_integer),
        number<std::uint64_t>("uint64", MPI_UINT64_T, c_integer),
        number<MPI_Aint>("aint", MPI_AINT, c_integer | fortran_integer),
        number<MPI_Count>("count", MPI_COUNT, c_integer | fortran_integer),
        number<int>("Fortran integer", MPI_INTEGER, fortran_integer),
        number<float>("float", MPI_FLOAT, floating),
        number<double>("double", MPI_DOUBLE, floating),
        number<long double>("long double", MPI_LONG_DOUBLE, floating),
        number<float>("Fortran real", MPI_REAL, floating),
        number<double>("Fortran double precision", MPI_DOUBLE_PRECISION, floating),
        number<bool>("bool", MPI_C_BOOL, logical),
        complex_number<float>("complex float", MPI_C_FLOAT_COMPLEX),
        complex_number<double>("complex double", MPI_C_DOUBLE_COMPLEX),
        complex_number<long double>("complex long double", MPI_C_LONG_DOUBLE_COMPLEX),
        complex_number<float>("Fortran complex", MPI_COMPLEX),
        number<unsigned char>("byte", MPI_BYTE, byte),
        value_and_index<int, int>("2int", MPI_2INT),
        value_and_index<short, int>("short int", MPI_SHORT_INT),
        value_and_index<long, int>("long int", MPI_LONG_INT),
        value_and_index<float, int>("float int", MPI_FLOAT_INT),
        value_and_index<double, int>("double int", MPI_DOUBLE_INT),
        value_and_index<long double, int>("long double int", MPI_LONG_DOUBLE_INT),
        value_and_index<float, float>("2real", MPI_2REAL),
        value_and_index<double, double>("2double precision", MPI_2DOUBLE_PRECISION),
    };
}

std::vector<Op> all_ops() {
    constexpr unsigned integer = c_integer | fortran_integer;
    return {
        {"sum", MPI_SUM, integer | floating | complex},
        {"product", MPI_PROD, integer | floating | complex},
        {"min", MPI_MIN, integer | floating},
        {"max", MPI_MAX, integer | floating},
        {"land", MPI_LAND, c_integer | logical},
        {"lor", MPI_LOR, c_integer | logical},
        {"lxor", MPI_LXOR, c_integer | logical},
        {"band", MPI_BAND, integer | byte},
        {"bor", MPI_BOR, integer | byte},
        {"bxor", MPI_BXOR, integer | byte},
        {"minloc", MPI_MINLOC, pair},
        {"maxloc", MPI_MAXLOC, pair},
    };
}

Bytes operands(const Type& type, std::size_t elements, int seed) {
    Bytes data((elements + 1) * type.extent);  // empty buffers would be the same one
    const int rank = check::rank_of(MPI_COMM_WORLD);
    for (std::size_t i = 0; i < elements; ++i)
        type.set(data.data() + i * type.extent,
                 static_cast<int>((i * 5 + static_cast<std::size_t>(rank * 3 + seed)) % 4));
    return data;
}

struct Case {
    const Type& type;
    const Op& op;
    MPI_Comm comm;
    std::string name;
    int count;
    unsigned forms = check::every_form;
    bool in_place = false;

    std::string text(const std::string& call) const {
        return fmt::format("{}{} of {} {} ({}) on {}", call, in_place ? " in place" : "", count, type.name,
                           op.name, name);
    }
    void compare(const std::string& call, const Bytes& recv, const check::Forms& all) const {
        check::compare_forms(text(call), recv, all, forms, [this](const Bytes& a, const Bytes& b) {
            return same(a, b, a.size() / type.extent);
        });
    }
    bool same(const Bytes& a, const Bytes& b, std::size_t elements) const {
        for (std::size_t i = 0; i < elements; ++i) {
            if (!type.same(a.data() + i * type.extent, b.data() + i * type.extent)) return false;
        }
        return true;
    }
};

void allreduce(const Case& c) {
    const Bytes send = operands(c.type, static_cast<std::size_t>(c.count), 1);
    const Bytes recv = c.in_place ? send : operands(c.type, static_cast<std::size_t>(c.count), 2);
    const void* from = c.in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    c.compare("allreduce", recv,
              FORMS(Allreduce, allreduce, from, to, c.count, c.type.mpi, c.op.mpi, c.comm));
}

void scans(const Case& c) {
    const Bytes send = operands(c.type, static_cast<std::size_t>(c.count), 1);
    const Bytes recv = c.in_place ? send : operands(c.type, static_cast<std::size_t>(c.count), 2);
    const void* from = c.in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    c.compare("scan", recv, FORMS(Scan, scan, from, to, c.count, c.type.mpi, c.op.mpi, c.comm));
    c.compare("exscan", recv, FORMS(Exscan, exscan, from, to, c.count, c.type.mpi, c.op.mpi, c.comm));
}

// The receive buffer of an exclusive scan's first rank must not affect the choice, and does not change.
// Buffers without elements must not affect it either.
void insignificant_buffers() {
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const std::vector<int> send(2000, rank + 1);
    std::vector<int> recv(2000, -1);
    void* const at_first[] = {nullptr, const_cast<int*>(send.data()), recv.data()};
    for (void* first : at_first) {
        recv.assign(recv.size(), -1);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iexscan(send.data(), rank == 0 ? first : recv.data(), 2000, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                    &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const int expected = rank == 0 ? -1 : rank * (rank + 1) / 2;
        check::that(recv == std::vector<int>(2000, expected) && send == std::vector<int>(2000, rank + 1),
                    "exscan gave {} instead of {}", recv[0], expected);
    }
    std::vector<int> counts(static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD)), 0);
    counts[0] = 2000;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ireduce_scatter(send.data(), rank == 0 ? recv.data() : const_cast<int*>(send.data()), counts.data(),
                        MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(rank != 0 || recv == std::vector<int>(2000, check::size_of(MPI_COMM_WORLD)),
                "reduce_scatter to the first rank only");
}

void reduce(Case c, int root) {
#if defined(MPICH_VERSION)
    // MPICH's own blocking form crashes there.
    if (c.in_place) c.forms &= ~check::waited;
#endif
    const bool is_root = check::rank_of(c.comm) == root;
    const Bytes send = operands(c.type, static_cast<std::size_t>(c.count), root);
    const Bytes recv = c.in_place ? send : operands(c.type, static_cast<std::size_t>(c.count), 2);
    const void* from = c.in_place && is_root ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    c.compare(
        fmt::format("reduce to {}", root), recv,
        FORMS(Reduce, reduce, from, is_root ? to : nullptr, c.count, c.type.mpi, c.op.mpi, root, c.comm));
}

void reduce_scatter(const Case& c) {
    const int ranks = check::size_of(c.comm);
    std::vector<int> counts;
    for (int r = 0; r < ranks; ++r)
        counts.push_back(r % 3 == 1 ? 0 : c.count / 2 + r);
    const auto all = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0));
    const Bytes send = operands(c.type, all, 1);
    const Bytes recv = c.in_place ? send : operands(c.type, all, 2);
    const void* from = c.in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    const int* array = counts.data();
    // In place, the library may use the memory behind the result.
    const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(check::rank_of(c.comm))]);
    const auto compare = [&](const std::string& call, std::size_t elements, const check::Forms& forms) {
        check::compare_forms(c.text(call), recv, forms, c.forms, [&](const Bytes& a, const Bytes& b) {
            return c.same(a, b, c.in_place ? elements : a.size() / c.type.extent);
        });
    };
    compare("reduce_scatter", mine,
            FORMS(Reduce_scatter, reduce_scatter, from, to, array, c.type.mpi, c.op.mpi, c.comm));
    const int block = static_cast<int>(all) / ranks;
    compare("reduce_scatter_block", static_cast<std::size_t>(block),
            FORMS(Reduce_scatter_block, reduce_scatter_block, from, to, block, c.type.mpi, c.op.mpi, c.comm));
}

void all_calls(const Case& c) {
    allreduce(c);
    scans(c);
    reduce(c, 0);
    reduce(c, check::size_of(c.comm) - 1);
    reduce_scatter(c);
}

// This operation is associative and not commutative: it returns the first operand.
void first(void* in, void* inout, int* count, MPI_Datatype*) {
    std::memcpy(inout, in, static_cast<std::size_t>(*count) * sizeof(long));
}

void user_defined() {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(first, 0, &op);
    const Type type = number<long>("long", MPI_LONG, c_integer);
    all_calls({type, {"user-defined", op, 0}, MPI_COMM_WORLD, "world", 11});
    MPI_Op_free(&op);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm parity = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);

    const std::vector<Type> types = all_types();
    const std::vector<Op> ops = all_ops();
    int turn = 0;
    for (const Type& type : types) {
        for (const Op& op : ops) {
            if ((type.kinds & op.kinds) == 0) continue;
            Case c{type, op, MPI_COMM_WORLD, "world", 37 + turn % 5, check::started};
            allreduce(c);
            ++turn;
            c.in_place = turn % 3 == 0;
            if (turn % 4 == 0) scans(c);
            if (turn % 4 == 1) reduce(c, turn % check::size_of(MPI_COMM_WORLD));
            if (turn % 4 == 2) reduce_scatter(c);
        }
    }
    const Type doubles = number<double>("double", MPI_DOUBLE, floating);
    const Type places = value_and_index<double, int>("double int", MPI_DOUBLE_INT);
    for (const bool in_place : {false, true}) {
        for (const int count : {0, 1, 1000, 30011})
            all_calls({doubles, ops[0], MPI_COMM_WORLD, "world", count, check::every_form, in_place});
        all_calls({places, ops[10], reversed, "reversed", 500, check::every_form, in_place});
        all_calls({doubles, ops[3], parity, "parity", 700, check::every_form, in_place});
    }
    user_defined();
    if (check::size_of(MPI_COMM_WORLD) > 1) insignificant_buffers();
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&parity);
    return check::finish();
}
