// Sums and products of floating-point numbers, computed repeatedly from the same operands, have the same bits
// each time, whatever trials there are between engines and however long ranks are delayed. Reductions of
// integers of the same sizes run beside them and may change their engine.
//   equal_bits_test switch   rank 0 also asks for another engine with MPI_Pcontrol
#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <thread>

#include "check.h"

namespace {

constexpr int calls = 40;
constexpr std::size_t below = 12'000, above = 40'000;  // doubles, on both sides of the switch-over

bool switches = false;

// The delays differ in every run.
std::mt19937& delays() {
    static std::mt19937 generator{std::random_device{}()};
    return generator;
}

// Delays this rank, like a program that computes or a process that is not scheduled.
void dawdle() {
    const std::chrono::microseconds time{delays()() % 400};
    if (delays()() % 8 == 0) return std::this_thread::sleep_for(4 * time);
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

template <typename T>
std::vector<T> operands(std::size_t count) {
    std::mt19937 generator{static_cast<unsigned>(check::rank_of(MPI_COMM_WORLD) + 1)};
    // The operands have many magnitudes, so the order of a sum shows, and their products stay finite.
    std::uniform_real_distribution<double> exponent{-6, 6}, factor{1, 2};
    std::vector<T> values(count);
    for (T& value : values)
        value = static_cast<T>(factor(generator) * std::exp2(exponent(generator)));
    return values;
}

template <typename T, typename Start>
void repeat(const char* name, std::size_t count, Start start) {
    const std::vector<T> mine = operands<T>(count);
    std::vector<T> result(count), first;
    const std::vector<int> ints(count, 1);
    std::vector<int> sums(count);
    for (int call = 0; call < calls; ++call) {
        if (switches && call % (calls / 2) == 0 && check::rank_of(MPI_COMM_WORLD) == 0)
            MPI_Pcontrol(call == 0 ? 1 : 0);
        MPI_Request requests[2];
        std::fill(result.begin(), result.end(), T{});
        start(mine.data(), result.data(), static_cast<int>(count), &requests[0]);
        MPI_Iallreduce(ints.data(), sums.data(), static_cast<int>(count), MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &requests[1]);
        dawdle();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        // The ranks agree on trials in this call.
        double time = MPI_Wtime(), latest = 0;
        MPI_Allreduce(&time, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (call == 0) first = result;
        check::that(std::memcmp(result.data(), first.data(), count * sizeof(T)) == 0,
                    "{} of {}: call {} differs from the first", name, count, call);
        check::that(sums[count / 2] == check::size_of(MPI_COMM_WORLD), "the sum of integers");
    }
}

template <typename T>
void all_reductions(MPI_Datatype type, MPI_Op op, std::size_t count) {
    repeat<T>("iallreduce", count, [&](const T* send, T* recv, int n, MPI_Request* request) {
        MPI_Iallreduce(send, recv, n, type, op, MPI_COMM_WORLD, request);
    });
    repeat<T>("ireduce", count, [&](const T* send, T* recv, int n, MPI_Request* request) {
        MPI_Ireduce(send, recv, n, type, op, 0, MPI_COMM_WORLD, request);
    });
    repeat<T>("ireduce_scatter_block", count, [&](const T* send, T* recv, int n, MPI_Request* request) {
        MPI_Ireduce_scatter_block(send, recv, n / check::size_of(MPI_COMM_WORLD), type, op, MPI_COMM_WORLD,
                                  request);
    });
    repeat<T>("iscan", count, [&](const T* send, T* recv, int n, MPI_Request* request) {
        MPI_Iscan(send, recv, n, type, op, MPI_COMM_WORLD, request);
    });
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    switches = argc > 1 && std::strcmp(argv[1], "switch") == 0;
    all_reductions<double>(MPI_DOUBLE, MPI_SUM, above);
    all_reductions<double>(MPI_DOUBLE, MPI_PROD, below);
    all_reductions<float>(MPI_FLOAT, MPI_SUM, 2 * above);
    all_reductions<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX, MPI_SUM, above / 2);
    return check::finish();
}
