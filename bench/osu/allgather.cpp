#include "measurement.h"

namespace osu {

namespace {

class Allgather : public Measurement {
  public:
    Allgather(const Shape& shape, const mpi_support::World& world)
        : world_(world), out_(shape.largest), in_(shape.largest * static_cast<std::size_t>(world.ranks)) {}

    const char* unit() const override { return "us"; }

    double timed(std::size_t bytes, long iterations) override {
        double seconds = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        for (long i = 0; i < iterations; ++i) {
            const double start = MPI_Wtime();
            gather(static_cast<int>(bytes));
            seconds += MPI_Wtime() - start;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return seconds / world_.ranks;
    }

    double value(std::size_t, long iterations, double seconds) const override {
        return seconds * 1e6 / static_cast<double>(iterations);
    }

    bool verified(std::size_t bytes) override {
        fill(out_.data(), bytes, world_.rank);
        in_.clear();
        gather(static_cast<int>(bytes));
        bool right = true;
        for (int rank = 0; rank < world_.ranks; ++rank)
            right = is_filled(in_.data() + static_cast<std::size_t>(rank) * bytes, bytes, rank) && right;
        return right;
    }

  private:
    void gather(int bytes) {
        MPI_Allgather(out_.data(), bytes, MPI_CHAR, in_.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
    }

    mpi_support::World world_;
    PageBuffer out_, in_;
};

}  // namespace

std::unique_ptr<Measurement> make_allgather(const Shape& shape, const mpi_support::World& world) {
    return std::make_unique<Allgather>(shape, world);
}

}  // namespace osu
