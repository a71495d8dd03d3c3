// One-sided operations with datatypes of all constructors, checked against what MPI_Pack makes of them, and
// with datatypes that join memory far apart (MPI_BOTTOM and absolute addresses).
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "check.h"

namespace {

int me = 0, ranks = 1, right = 0, left = 0;

struct Made {
    std::string name;
    MPI_Datatype type = MPI_DATATYPE_NULL;
};

// Every constructor, each of ints and of elements with gaps of their own.
std::vector<Made> make_types() {
    std::vector<Made> made;
    MPI_Datatype gaps = MPI_DATATYPE_NULL, resized = MPI_DATATYPE_NULL;
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &gaps);
    MPI_Type_create_resized(gaps, 0, 10, &resized);
    for (const auto& [inner_name, inner] :
         {std::pair{"ints", MPI_INT}, {"parts with gaps", resized}, {"pairs", MPI_SHORT_INT}}) {
        const auto add = [&, name = inner_name](const char* constructor) -> MPI_Datatype* {
            made.push_back({std::string(constructor) + " of " + name, MPI_DATATYPE_NULL});
            return &made.back().type;
        };
        const int lengths[] = {2, 0, 3, 1}, places[] = {7, 3, 0, 12};
        const MPI_Aint bytes[] = {64, 8, 0, 100};
        const MPI_Datatype types[] = {inner, MPI_DOUBLE, MPI_CHAR, inner};
        MPI_Type_contiguous(5, inner, add("contiguous"));
        MPI_Type_vector(3, 2, 4, inner, add("vector"));
        MPI_Type_vector(3, 2, 2, inner, add("dense vector"));
        MPI_Type_create_hvector(3, 2, 52, inner, add("hvector"));
        MPI_Type_indexed(4, lengths, places, inner, add("indexed"));
        MPI_Type_create_hindexed(4, lengths, bytes, inner, add("hindexed"));
        MPI_Type_create_indexed_block(4, 2, places, inner, add("indexed_block"));
        MPI_Type_create_hindexed_block(4, 2, bytes, inner, add("hindexed_block"));
        MPI_Type_create_struct(4, lengths, bytes, types, add("struct"));
        MPI_Type_dup(inner, add("dup"));
        MPI_Type_create_resized(inner, -4, 24, add("resized"));
        const int sizes[] = {4, 5, 6}, parts[] = {2, 3, 4}, starts[] = {1, 2, 1};
        MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, inner, add("subarray in C's order"));
        MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, inner,
                                 add("subarray in Fortran's order"));
        const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
        const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2, MPI_DISTRIBUTE_DFLT_DARG};
        const int grid[] = {2, 2, 1};
        for (int rank = 0; rank < 4; ++rank)
            for (const int order : {MPI_ORDER_C, MPI_ORDER_FORTRAN})
                MPI_Type_create_darray(4, rank, 3, sizes, kinds, arguments, grid, order, inner,
                                       add("darray"));
    }
    for (Made& each : made)
        MPI_Type_commit(&each.type);
    MPI_Type_free(&gaps);
    MPI_Type_free(&resized);
    return made;
}

std::vector<char> packed(const void* elements, int count, MPI_Datatype type) {
    int bytes = 0, position = 0;
    MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
    std::vector<char> all(static_cast<std::size_t>(bytes));
    MPI_Pack(elements, count, type, all.data(), bytes, &position, MPI_COMM_SELF);
    all.resize(static_cast<std::size_t>(position));
    return all;
}

// Puts two elements to the right neighbour as plain bytes, gets them back into elements, and the other way.
void test_constructors() {
    constexpr std::size_t room = 16384, middle = room / 4;
    std::vector<char> memory(room);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (const Made& made : make_types()) {
        std::vector<char> source(room), back(room), expected(room);
        for (std::size_t i = 0; i < room; ++i)
            source[i] = static_cast<char>(i * 7 + i / 251);
        const std::vector<char> bytes = packed(source.data() + middle, 2, made.type);
        const int length = static_cast<int>(bytes.size());
        std::ranges::fill(memory, 0);
        MPI_Win_fence(0, win);
        MPI_Put(source.data() + middle, 2, made.type, right, 0, length, MPI_BYTE, win);
        MPI_Put(bytes.data(), length, MPI_BYTE, right, room / 2, 2, made.type, win);
        MPI_Win_fence(0, win);
        check::that(std::equal(bytes.begin(), bytes.end(), memory.begin()), "{} at the origin", made.name);
        check::that(packed(memory.data() + room / 2, 2, made.type) == bytes, "{} at the target", made.name);
        MPI_Get(back.data() + middle, 2, made.type, right, 0, length, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        int position = 0;
        MPI_Unpack(bytes.data(), length, &position, expected.data() + middle, 2, made.type, MPI_COMM_SELF);
        check::that(back == expected, "{} as the result of a get", made.name);
    }
    MPI_Win_free(&win);
}

constexpr int count = 1000;
int fixed[count];

// Two parts, one in static memory and one far away.
class FarParts {
  public:
    FarParts() : own_(map(far)), second_(reinterpret_cast<int*>(own_ + (std::size_t{5} << 30))) {
        MPI_Get_address(fixed, &places_[0]);
        MPI_Get_address(second_, &places_[1]);
        type_ = type_at(places_);
    }
    ~FarParts() {
        MPI_Type_free(&type_);
        munmap(own_, far);
    }
    FarParts(const FarParts&) = delete;
    FarParts& operator=(const FarParts&) = delete;

    static MPI_Datatype type_at(const MPI_Aint* places) {
        const int lengths[] = {count, count};
        const MPI_Datatype types[] = {MPI_INT, MPI_INT};
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_struct(2, lengths, places, types, &type);
        MPI_Type_commit(&type);
        return type;
    }
    MPI_Datatype type() const { return type_; }
    const MPI_Aint* places() const { return places_; }
    int* second() const { return second_; }
    void fill(int from) const {
        std::iota(fixed, fixed + count, from);
        std::iota(second_, second_ + count, from + count);
    }
    bool is_filled(int from) const {
        for (int i = 0; i < count; ++i)
            if (fixed[i] != from + i || second_[i] != from + count + i) return false;
        return true;
    }

  private:
    static constexpr std::size_t far = (std::size_t{5} << 30) + (1 << 20);
    static char* map(std::size_t bytes) {
        return static_cast<char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    }
    char* own_;
    int* second_;
    MPI_Aint places_[2] = {};
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

bool counts_from(const int* values, int from) {
    for (int i = 0; i < 2 * count; ++i)
        if (values[i] != from + i) return false;
    return true;
}

void test_origin(const FarParts& parts) {
    std::vector<int> memory(std::size_t{2} * count), fetched(memory.size());
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    parts.fill(me * 10000);
    MPI_Win_fence(0, win);
    MPI_Put(MPI_BOTTOM, 1, parts.type(), right, 0, 2 * count, MPI_INT, win);
    MPI_Win_fence(0, win);
    check::that(counts_from(memory.data(), left * 10000), "a put from parts far apart");
    MPI_Win_fence(0, win);
    MPI_Accumulate(MPI_BOTTOM, 1, parts.type(), right, 0, 2 * count, MPI_INT, MPI_REPLACE, win);
    MPI_Win_fence(0, win);
    check::that(counts_from(memory.data(), left * 10000), "an accumulate from parts far apart");
    parts.fill(-1);
    MPI_Win_fence(0, win);
    MPI_Get(MPI_BOTTOM, 1, parts.type(), right, 0, 2 * count, MPI_INT, win);
    MPI_Win_fence(0, win);
    check::that(parts.is_filled(me * 10000), "a get into parts far apart");
    parts.fill(-1);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
    MPI_Get_accumulate(nullptr, 0, MPI_INT, MPI_BOTTOM, 1, parts.type(), right, 0, 2 * count, MPI_INT,
                       MPI_NO_OP, win);
    MPI_Win_unlock(right, win);
    check::that(parts.is_filled(me * 10000), "a get_accumulate into parts far apart");
    MPI_Win_free(&win);
}

void test_target(const FarParts& parts) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, fixed, sizeof fixed);
    MPI_Win_attach(win, parts.second(), sizeof fixed);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(2 * ranks));
    PMPI_Allgather(parts.places(), 2, MPI_AINT, all.data(), 2, MPI_AINT, MPI_COMM_WORLD);
    MPI_Datatype there = FarParts::type_at(&all[static_cast<std::size_t>(2 * right)]);
    std::vector<int> values(std::size_t{2} * count);
    std::iota(values.begin(), values.end(), me * 10000);
    MPI_Win_fence(0, win);
    MPI_Put(values.data(), 2 * count, MPI_INT, right, 0, 1, there, win);
    MPI_Win_fence(0, win);
    check::that(parts.is_filled(left * 10000), "a put to parts far apart");
    MPI_Win_detach(win, fixed);
    MPI_Win_detach(win, parts.second());
    MPI_Win_free(&win);
    MPI_Type_free(&there);
}

std::size_t peak_bytes() {
    struct rusage used {};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    me = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    right = (me + 1) % ranks;
    left = (me + ranks - 1) % ranks;
    test_constructors();
    const std::size_t before = peak_bytes();
    {
        const FarParts parts;
        test_origin(parts);
        test_target(parts);
    }
    check::that(peak_bytes() < before + (std::size_t{64} << 20), "memory grew with the extent: {} MiB",
                (peak_bytes() - before) >> 20);
    return check::finish();
}
