// bw and mbw_mr. bw is mbw_mr with one pair.
#include "measurement.h"

namespace osu {

namespace {

constexpr int kDataTag = 1, kAnswerTag = 2;
constexpr int kAnswerBytes = 4;

class Bandwidth : public Measurement {
  public:
    Bandwidth(const Shape& shape, const mpi_support::World& world)
        : pairs_(world.ranks / 2),
          window_(shape.window),
          sends_(world.rank < pairs_),
          peer_(sends_ ? world.rank + pairs_ : world.rank - pairs_),
          rank_(world.rank),
          buffer_(shape.largest),
          requests_(static_cast<std::size_t>(window_), MPI_REQUEST_NULL) {}

    const char* unit() const override { return "MB/s"; }

    double timed(std::size_t bytes, long iterations) override {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (long i = 0; i < iterations; ++i)
            window(static_cast<int>(bytes));
        double seconds = sends_ ? MPI_Wtime() - start : 0.0;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return seconds / pairs_;
    }

    double value(std::size_t bytes, long iterations, double seconds) const override {
        return static_cast<double>(bytes) * pairs_ * window_ * static_cast<double>(iterations) / seconds /
               1e6;
    }

    bool verified(std::size_t bytes) override {
        if (sends_) {
            fill(buffer_.data(), bytes, rank_);
        } else {
            buffer_.clear();
        }
        window(static_cast<int>(bytes));
        return sends_ || is_filled(buffer_.data(), bytes, peer_);
    }

  private:
    void window(int bytes) {
        for (MPI_Request& request : requests_) {
            if (sends_) {
                MPI_Isend(buffer_.data(), bytes, MPI_CHAR, peer_, kDataTag, MPI_COMM_WORLD, &request);
            } else {
                MPI_Irecv(buffer_.data(), bytes, MPI_CHAR, peer_, kDataTag, MPI_COMM_WORLD, &request);
            }
        }
        MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
        char answer[kAnswerBytes] = {};
        if (sends_) {
            MPI_Recv(answer, kAnswerBytes, MPI_CHAR, peer_, kAnswerTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(answer, kAnswerBytes, MPI_CHAR, peer_, kAnswerTag, MPI_COMM_WORLD);
        }
    }

    int pairs_, window_;
    bool sends_;
    int peer_, rank_;
    PageBuffer buffer_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Measurement> make_bandwidth(const Shape& shape, const mpi_support::World& world) {
    return std::make_unique<Bandwidth>(shape, world);
}

}  // namespace osu
