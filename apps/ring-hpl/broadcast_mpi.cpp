#include <mpi.h>

#include <array>

#include "ring-hpl/broadcast.h"

namespace ring_hpl {

namespace {

constexpr int kTag = 11;

class MpiBroadcast : public PanelBroadcast {
  public:
    MpiBroadcast(const Shape& shape, mpi_support::Allocator allocator) : shape_(shape) {
        for (mpi_support::Buffer& slot : slots_)
            slot = mpi_support::Buffer(panel_doubles(shape, 0) * sizeof(double), allocator);
    }
    double* buffer(int panel) override { return slots_[panel % 2].as<double>(); }

  protected:
    int count(int panel) const { return static_cast<int>(panel_doubles(shape_, panel)); }

    const Shape shape_;

  private:
    std::array<mpi_support::Buffer, 2> slots_;
};

class RingBroadcast final : public MpiBroadcast {
  public:
    using MpiBroadcast::MpiBroadcast;

    ~RingBroadcast() override { MPI_Waitall(2, sends_.data(), MPI_STATUSES_IGNORE); }

    void reclaim(int panel) override { MPI_Wait(&sends_[panel % 2], MPI_STATUS_IGNORE); }

    void start(int panel) override {
        if (shape_.owner(panel) == shape_.rank) {
            pass_on(panel);
            return;
        }
        const int left = (shape_.rank + shape_.ranks - 1) % shape_.ranks;
        MPI_Irecv(buffer(panel), count(panel), MPI_DOUBLE, left, kTag, MPI_COMM_WORLD, &receive_);
    }

    void progress(int panel) override {
        int done = 0;
        if (receive_ != MPI_REQUEST_NULL) {
            MPI_Test(&receive_, &done, MPI_STATUS_IGNORE);
            if (done != 0) pass_on(panel);
        } else if (sends_[panel % 2] != MPI_REQUEST_NULL) {
            MPI_Test(&sends_[panel % 2], &done, MPI_STATUS_IGNORE);
        }
    }

    void finish(int panel) override {
        if (receive_ == MPI_REQUEST_NULL) return;
        MPI_Wait(&receive_, MPI_STATUS_IGNORE);
        pass_on(panel);
    }

  private:
    void pass_on(int panel) {
        const int right = (shape_.rank + 1) % shape_.ranks;
        if (right == shape_.owner(panel)) return;
        MPI_Isend(buffer(panel), count(panel), MPI_DOUBLE, right, kTag, MPI_COMM_WORLD, &sends_[panel % 2]);
    }

    MPI_Request receive_ = MPI_REQUEST_NULL;
    std::array<MPI_Request, 2> sends_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

class IbcastBroadcast final : public MpiBroadcast {
  public:
    using MpiBroadcast::MpiBroadcast;

    ~IbcastBroadcast() override { MPI_Waitall(2, requests_.data(), MPI_STATUSES_IGNORE); }

    void reclaim(int panel) override { MPI_Wait(&requests_[panel % 2], MPI_STATUS_IGNORE); }

    void start(int panel) override {
        MPI_Ibcast(buffer(panel), count(panel), MPI_DOUBLE, shape_.owner(panel), MPI_COMM_WORLD,
                   &requests_[panel % 2]);
    }

    void progress(int panel) override {
        int done = 0;
        MPI_Test(&requests_[panel % 2], &done, MPI_STATUS_IGNORE);
    }

    // The owner already has the panel. It waits only when it needs the slot again.
    void finish(int panel) override {
        if (shape_.owner(panel) != shape_.rank) MPI_Wait(&requests_[panel % 2], MPI_STATUS_IGNORE);
    }

  private:
    std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace

std::size_t panel_doubles(const Shape& shape, int panel) {
    const auto width = static_cast<std::size_t>(shape.width(panel));
    return width + width * static_cast<std::size_t>(shape.rows_below(panel));
}

std::unique_ptr<PanelBroadcast> make_ring_broadcast(const Shape& shape, mpi_support::Allocator allocator) {
    return std::make_unique<RingBroadcast>(shape, allocator);
}

std::unique_ptr<PanelBroadcast> make_ibcast_broadcast(const Shape& shape, mpi_support::Allocator allocator) {
    return std::make_unique<IbcastBroadcast>(shape, allocator);
}

}  // namespace ring_hpl
