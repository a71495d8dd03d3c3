// Runs all tests on every rank. Only rank 0 prints the tests that pass; a failure on any rank fails all
// ranks.
#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (rank != 0) {
        struct Failures : testing::EmptyTestEventListener {
            void OnTestPartResult(const testing::TestPartResult& result) override {
                if (result.failed())
                    std::fprintf(stderr, "%s:%d: %s\n", result.file_name(), result.line_number(),
                                 result.message());
            }
        };
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new Failures);
    }
    int failed = RUN_ALL_TESTS();
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
