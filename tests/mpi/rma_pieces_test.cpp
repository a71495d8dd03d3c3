// One-sided operations of very many small pieces: 100,000 pieces of one int, at even strides and at random
// places. All ranks put, get and accumulate them at once, beside small operations of the same ranks.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "check.h"
#include "window_memory.h"

namespace {

int pieces = 100000;  // or as the first argument says
int room = 0;
int me = 0;
int ranks = 1;

struct Shape {
    const char* name;
    MPI_Datatype type;
    std::vector<int> places;  // of its ints, in their order
};

std::vector<Shape> make_shapes() {
    Shape even{"a vector", MPI_DATATYPE_NULL, {}};
    MPI_Type_vector(pieces, 1, 2, MPI_INT, &even.type);
    Shape random{"random places", MPI_DATATYPE_NULL, {}};
    std::mt19937 engine(5);
    for (int i = 0; i < pieces; ++i) {
        even.places.push_back(2 * i);
        random.places.push_back(3 * i + static_cast<int>(engine() % 2));
    }
    std::shuffle(random.places.begin(), random.places.end(), engine);
    MPI_Type_create_indexed_block(pieces, 1, random.places.data(), MPI_INT, &random.type);
    std::vector<Shape> shapes{even, random};
    for (Shape& shape : shapes)
        MPI_Type_commit(&shape.type);
    return shapes;
}

// Every rank puts to its right neighbour and gets the data back, from contiguous ints and from as many
// pieces.
void test_moves(const Shape& at_origin, const Shape& at_target) {
    const int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    const auto ints = static_cast<std::size_t>(room), count = static_cast<std::size_t>(pieces);
    WindowMemory<int> memory(ints, -1);
    std::vector<int> source(ints), back(ints, -2), expected(ints, -1);
    std::iota(source.begin(), source.end(), me * 1000000);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(ints * sizeof(int)), sizeof(int), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(source.data(), 1, at_origin.type, right, 0, 1, at_target.type, win);
    MPI_Win_fence(0, win);
    for (std::size_t i = 0; i < count; ++i)
        expected[static_cast<std::size_t>(at_target.places[i])] = left * 1000000 + at_origin.places[i];
    check::that(std::equal(memory.begin(), memory.end(), expected.begin()), "put of {} into {}",
                at_origin.name, at_target.name);
    MPI_Win_fence(0, win);
    MPI_Get(back.data(), pieces, MPI_INT, right, 0, 1, at_target.type, win);
    MPI_Win_fence(0, win);
    bool same = true;
    for (std::size_t i = 0; i < count; ++i)
        same = same && back[i] == me * 1000000 + at_origin.places[i];
    check::that(same, "get from {}", at_target.name);
    MPI_Win_free(&win);
}

// All ranks add to the same pieces of one rank. Meanwhile they count in a word beside them.
void test_sums(const Shape& shape) {
    const int target = ranks - 1;
    constexpr int times = 3, counts = 20;
    const auto ints = static_cast<std::size_t>(room), count = static_cast<std::size_t>(pieces);
    WindowMemory<int> memory(ints + 1, 0);
    const std::vector<int> ones(count, 1);
    std::vector<int> before(count, -1);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>((ints + 1) * sizeof(int)), sizeof(int), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < times; ++i)
        MPI_Accumulate(ones.data(), pieces, MPI_INT, target, 0, 1, shape.type, MPI_SUM, win);
    MPI_Get_accumulate(ones.data(), pieces, MPI_INT, before.data(), pieces, MPI_INT, target, 0, 1, shape.type,
                       MPI_SUM, win);
    const int one = 1;
    int last = -1;
    for (int i = 0; i < counts; ++i) {
        int ticket = -1;
        MPI_Fetch_and_op(&one, &ticket, MPI_INT, target, room, MPI_SUM, win);
        MPI_Win_flush(target, win);
        check::that(ticket > last && ticket < counts * ranks, "ticket {} after {}", ticket, last);
        last = ticket;
    }
    MPI_Win_unlock_all(win);
    // Updates of one rank take effect in their order.
    check::that(
        std::ranges::all_of(before, [](int each) { return each >= times && each < (times + 1) * ranks; }),
        "what was there before, {}", shape.name);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == target) {
        MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
        std::vector<int> expected(ints, 0);
        for (const int place : shape.places)
            expected[static_cast<std::size_t>(place)] = (times + 1) * ranks;
        check::that(std::equal(expected.begin(), expected.end(), memory.begin()), "sums at {}", shape.name);
        check::that(memory[ints] == counts * ranks, "{} counted", memory[ints]);
        MPI_Win_unlock(me, win);
    }
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    me = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    if (argc > 1) pieces = std::atoi(argv[1]);
    room = 3 * pieces;
    std::vector<Shape> shapes = make_shapes();
    for (const Shape& at_origin : shapes)
        for (const Shape& at_target : shapes)
            test_moves(at_origin, at_target);
    for (const Shape& shape : shapes)
        test_sums(shape);
    for (Shape& shape : shapes)
        MPI_Type_free(&shape.type);
    return check::finish();
}
