// --variant mpi and nonblocking: the halo exchange by MPI. With the MPI front end loaded, the device does the
// non-blocking exchange while the host computes the interior.
#include <mpi.h>

#include "halo/mpi_exchange.h"
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
          in_(layout_.face_numbers() * sizeof(double), allocator),
          exchange_(block_, layout_, out_.as<double>(), in_.as<double>()) {}

    double* field(int which) override { return fields_[which].as<double>(); }

    void step(int from) override {
        const double* const old = field(from);
        double* const next = field(1 - from);
        timed(times_.boundary_s, [&] {
            step_boundary(layout_, old, next);
            pack(layout_, Layer::face, next, out_.as<double>());
        });
        if (!blocking_) timed(times_.exchange_s, [&] { exchange_.start(); });
        timed(times_.interior_s, [&] { step_interior(layout_, old, next); });
        timed(times_.exchange_s, [&] {
            if (blocking_)
                exchange_.blocking();
            else
                exchange_.wait();
            unpack(layout_, Layer::halo, in_.as<double>(), next);
        });
    }

  private:
    const bool blocking_;
    std::array<mpi_support::Buffer, 2> fields_;
    mpi_support::Buffer out_, in_;
    MpiExchange exchange_;
};

}  // namespace

std::unique_ptr<Variant> make_mpi(const Domain& domain, const Block& block, bool blocking,
                                  mpi_support::Allocator allocator) {
    return std::make_unique<MpiVariant>(domain, block, blocking, allocator);
}

}  // namespace halo
