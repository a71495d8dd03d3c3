#include "measurement.h"

namespace osu {

namespace {

constexpr int kTag = 1;

class Latency : public Measurement {
  public:
    Latency(const Shape& shape, const mpi_support::World& world)
        : first_(world.rank == 0),
          peer_(1 - world.rank),
          rank_(world.rank),
          out_(shape.largest),
          in_(shape.largest) {}

    const char* unit() const override { return "us"; }

    double timed(std::size_t bytes, long iterations) override {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (long i = 0; i < iterations; ++i)
            round_trip(static_cast<int>(bytes));
        double seconds = MPI_Wtime() - start;
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        return seconds;
    }

    double value(std::size_t, long iterations, double seconds) const override {
        return seconds * 1e6 / (2.0 * static_cast<double>(iterations));
    }

    bool verified(std::size_t bytes) override {
        fill(out_.data(), bytes, rank_);
        in_.clear();
        round_trip(static_cast<int>(bytes));
        return is_filled(in_.data(), bytes, peer_);
    }

  private:
    void round_trip(int bytes) {
        if (first_) MPI_Send(out_.data(), bytes, MPI_CHAR, peer_, kTag, MPI_COMM_WORLD);
        MPI_Recv(in_.data(), bytes, MPI_CHAR, peer_, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!first_) MPI_Send(out_.data(), bytes, MPI_CHAR, peer_, kTag, MPI_COMM_WORLD);
    }

    bool first_;
    int peer_, rank_;
    PageBuffer out_, in_;
};

}  // namespace

std::unique_ptr<Measurement> make_latency(const Shape& shape, const mpi_support::World& world) {
    return std::make_unique<Latency>(shape, world);
}

}  // namespace osu
