// --variant mpi and nonblocking: the halo exchange by MPI. With the MPI front end loaded, the device does the
// non-blocking exchange while the host computes the interior.
#include <mpi.h>

#include "halo/variant.h"

namespace halo {

Variant::Variant(const Domain& domain, const Block& block) : block_(block) {
    layout_.dims = domain.dims;
    for (int dim = 0; dim < 3; ++dim) {
        layout_.n[dim] = block.n[dim];
        layout_.halo[dim] = domain.uses(dim) ? 1 : 0;
        for (int side = 0; side < 2; ++side)
            if (block.neighbour[dim][side] >= 0) layout_.sides |= 1u << (2 * dim + side);
    }
    layout_.stride[2] = 1;
    layout_.stride[1] = layout_.padded(2);
    layout_.stride[0] = layout_.padded(1) * layout_.padded(2);
}

namespace {

class MpiVariant final : public Variant {
  public:
    MpiVariant(const Domain& domain, const Block& block, bool blocking, mpi_support::Allocator allocator)
        : Variant(domain, block),
          blocking_(blocking),
          fields_{mpi_support::Buffer(layout_.numbers() * sizeof(double), allocator),
                  mpi_support::Buffer(layout_.numbers() * sizeof(double), allocator)},
          out_(layout_.face_numbers() * sizeof(double), allocator),
          in_(layout_.face_numbers() * sizeof(double), allocator) {}

    double* field(int which) override { return fields_[which].as<double>(); }

    void step(int from) override {
        const double* const old = field(from);
        double* const next = field(1 - from);
        timed(times_.boundary_s, [&] {
            step_boundary(layout_, old, next);
            pack(layout_, Layer::face, next, out_.as<double>());
        });
        int requests = 0;
        if (!blocking_) timed(times_.exchange_s, [&] { requests = start(); });
        timed(times_.interior_s, [&] { step_interior(layout_, old, next); });
        timed(times_.exchange_s, [&] {
            if (blocking_)
                exchange();
            else
                MPI_Waitall(requests, requests_.data(), MPI_STATUSES_IGNORE);
            unpack(layout_, Layer::halo, in_.as<double>(), next);
        });
    }

  private:
    double* face(const mpi_support::Buffer& faces, int dim, int side) const {
        return faces.as<double>() + layout_.face_begin(dim, side);
    }
    int peer(int dim, int side) const {
        return layout_.has(dim, side) ? block_.neighbour[dim][side] : MPI_PROC_NULL;
    }

    // A message to one side arrives from the opposite side.
    void exchange() {
        for (int dim = 0; dim < 3; ++dim) {
            const int numbers = static_cast<int>(layout_.face(dim));
            for (int side = 0; side < 2; ++side)
                MPI_Sendrecv(face(out_, dim, side), numbers, MPI_DOUBLE, peer(dim, side), tag_of(dim, side),
                             face(in_, dim, 1 - side), numbers, MPI_DOUBLE, peer(dim, 1 - side),
                             tag_of(dim, side), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }

    int start() {
        int count = 0;
        for (const bool sends : {false, true})
            for (int dim = 0; dim < 3; ++dim)
                for (int side = 0; side < 2; ++side) {
                    if (!layout_.has(dim, side)) continue;
                    const int numbers = static_cast<int>(layout_.face(dim));
                    MPI_Request* const request = &requests_[count++];
                    if (sends)
                        MPI_Isend(face(out_, dim, side), numbers, MPI_DOUBLE, peer(dim, side),
                                  tag_of(dim, side), MPI_COMM_WORLD, request);
                    else
                        MPI_Irecv(face(in_, dim, side), numbers, MPI_DOUBLE, peer(dim, side),
                                  tag_of(dim, 1 - side), MPI_COMM_WORLD, request);
                }
        return count;
    }

    const bool blocking_;
    std::array<mpi_support::Buffer, 2> fields_;
    mpi_support::Buffer out_, in_;
    std::array<MPI_Request, 12> requests_{};
};

}  // namespace

std::unique_ptr<Variant> make_mpi(const Domain& domain, const Block& block, bool blocking,
                                  mpi_support::Allocator allocator) {
    return std::make_unique<MpiVariant>(domain, block, blocking, allocator);
}

}  // namespace halo
