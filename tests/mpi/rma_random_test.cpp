// Random programs of one-sided operations. All ranks generate the same program from a seed and each does its
// part, so each knows what its memory must hold at the end of every epoch: puts go to places that belong to
// the origin, and updates commute. rma_random_test [SEED [EPOCHS [host]]] repeats a program; with `host`,
// without MPI_Get_accumulate, which Open MPI's own windows get wrong between nodes (4.1, osc pt2pt, more than
// 8 KiB).
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <string_view>

#include "check.h"
#include "window_memory.h"

namespace {

constexpr int slot_ints = 6000;  // of each origin, in each target's window; behind them those for updates

struct Program {
    explicit Program(unsigned seed) : random(seed) {}
    int below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }
    std::mt19937 random;
};

bool get_accumulates = true;

struct State {
    int me, ranks;
    MPI_Win win;
    WindowMemory<int> memory, expected;
    std::deque<std::vector<int>> buffers;  // of outstanding operations
    std::vector<MPI_Request> requests;
    std::vector<std::pair<std::vector<int>*, std::vector<int>>> gets;  // what must have come
};

MPI_Datatype strided(int blocks, int length, int stride) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    PMPI_Type_vector(blocks, length, stride, MPI_INT, &type);
    PMPI_Type_commit(&type);
    return type;
}

// One operation of the program, the same on all ranks. `origin` executes it, and `target` expects it.
void operate(Program& program, State& s, bool passive) {
    const int origin = program.below(s.ranks);
    const int target = program.below(s.ranks);
    const int kind = program.below(6);
    const bool with_request = program.below(3) == 0 && passive;
    const int blocks = 1 + program.below(program.below(4) == 0 ? 900 : 30);
    const int length = 1 + program.below(4);
    const int stride = length + program.below(3);
    const int span = (blocks - 1) * stride + length;
    const int value = 1 + program.below(1000);
    const bool update = kind >= 4;
    const int base = update ? s.ranks * slot_ints : origin * slot_ints;
    const int at = base + program.below(slot_ints - span + 1);
    const int count = blocks * length;
    MPI_Datatype type = strided(blocks, length, stride);
    if (s.me == target && kind != 3) {
        for (int i = 0; i < blocks; ++i) {
            for (int j = 0; j < length; ++j) {
                int& place = s.expected[static_cast<std::size_t>(at + i * stride + j)];
                place = update ? place + value : value + i;
            }
        }
    }
    if (s.me == origin) {
        std::vector<int>& buffer = s.buffers.emplace_back(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i)
            buffer[static_cast<std::size_t>(i)] = update ? value : value + i / length;
        MPI_Request request = MPI_REQUEST_NULL;
        if (update) {
            if (with_request) {
                MPI_Raccumulate(buffer.data(), count, MPI_INT, target, at, 1, type, MPI_SUM, s.win, &request);
            } else if (kind == 4 || !get_accumulates) {
                MPI_Accumulate(buffer.data(), count, MPI_INT, target, at, 1, type, MPI_SUM, s.win);
            } else {
                std::vector<int>& result = s.buffers.emplace_back(static_cast<std::size_t>(span));
                MPI_Get_accumulate(buffer.data(), count, MPI_INT, result.data(), 1, type, target, at, 1, type,
                                   MPI_SUM, s.win);
            }
        } else if (kind == 3) {
            // Gets memory that no rank writes: the last ints of every window name its owner.
            std::vector<int>& result = s.buffers.emplace_back(4, -1);
            const int tail = (s.ranks + 1) * slot_ints;
            if (with_request) {
                MPI_Rget(result.data(), 4, MPI_INT, target, tail, 4, MPI_INT, s.win, &request);
            } else {
                MPI_Get(result.data(), 4, MPI_INT, target, tail, 4, MPI_INT, s.win);
            }
            s.gets.emplace_back(&result, std::vector<int>(4, 7000 + target));
        } else if (with_request) {
            MPI_Rput(buffer.data(), count, MPI_INT, target, at, 1, type, s.win, &request);
        } else {
            MPI_Put(buffer.data(), count, MPI_INT, target, at, 1, type, s.win);
        }
        if (request != MPI_REQUEST_NULL) s.requests.push_back(request);
    }
    MPI_Type_free(&type);
}

// Puts of one epoch may overlap others of the same origin. The later ones must then follow a flush.
void epoch(Program& program, State& s) {
    const int sync = program.below(3);
    if (sync == 0) MPI_Win_fence(0, s.win);
    if (sync == 1) MPI_Win_lock_all(0, s.win);
    const int operations = 1 + program.below(25);
    for (int i = 0; i < operations; ++i) {
        if (sync == 2) {
            // Every rank locks one target after the other, shared or exclusively.
            const bool exclusive = program.below(2) == 0;
            const int target = program.below(s.ranks);
            MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, s.win);
            const int one = 1;
            MPI_Accumulate(&one, 1, MPI_INT, target, s.ranks * slot_ints, 1, MPI_INT, MPI_SUM, s.win);
            MPI_Win_unlock(target, s.win);
            if (target == s.me) s.expected[static_cast<std::size_t>(s.ranks * slot_ints)] += s.ranks;
            continue;
        }
        operate(program, s, sync == 1);
        if (sync == 1) {
            MPI_Waitall(static_cast<int>(s.requests.size()), s.requests.data(), MPI_STATUSES_IGNORE);
            s.requests.clear();
            MPI_Win_flush_all(s.win);
        } else {
            MPI_Win_fence(0, s.win);
        }
    }
    if (sync == 0) MPI_Win_fence(MPI_MODE_NOSUCCEED, s.win);
    if (sync == 1) MPI_Win_unlock_all(s.win);
    MPI_Barrier(MPI_COMM_WORLD);
}

void run(unsigned seed, int epochs) {
    Program program(seed);
    State s{};
    s.me = check::rank_of(MPI_COMM_WORLD);
    s.ranks = check::size_of(MPI_COMM_WORLD);
    s.memory.assign(static_cast<std::size_t>((s.ranks + 1) * slot_ints + 4), 0);
    std::fill(s.memory.end() - 4, s.memory.end(), 7000 + s.me);
    s.expected = s.memory;
    MPI_Win_create(s.memory.data(), static_cast<MPI_Aint>(s.memory.size() * sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &s.win);
    for (int i = 0; i < epochs && check::failures == 0; ++i) {
        epoch(program, s);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, s.me, 0, s.win);
        check::that(s.memory == s.expected, "seed {}, epoch {}: memory", seed, i);
        MPI_Win_unlock(s.me, s.win);
        for (const auto& [got, wanted] : s.gets)
            check::that(*got == wanted, "seed {}, epoch {}: a get", seed, i);
        s.gets.clear();
        s.buffers.clear();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&s.win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const unsigned first = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 1;
    const int epochs = argc > 2 ? std::atoi(argv[2]) : 12;
    get_accumulates = argc <= 3 || std::string_view(argv[3]) != "host";
    for (unsigned seed = first; seed < first + (argc > 1 ? 1 : 4); ++seed)
        run(seed, epochs);
    return check::finish();
}
