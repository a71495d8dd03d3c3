// What the variants share: one step of the simulation, the fields that it works on, and its times.
//
// Ownership: a variant owns the memory of its fields. Threads: one.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "halo/grid.h"
#include "halo/stencil.h"
#include "support/buffer.h"
#include "support/mpi_program.h"

namespace halo {

using mpi_support::World;

// Seconds since the variant was made. What a device does beside the host counts for the device: where it
// computes the boundary, boundary_s is its time, and the host's total does not contain it.
struct Times {
    double boundary_s = 0, interior_s = 0, exchange_s = 0;
};

class Variant {
  public:
    explicit Variant(const Domain& domain, const Block& block);
    virtual ~Variant() = default;
    Variant(const Variant&) = delete;
    Variant& operator=(const Variant&) = delete;

    const Layout& layout() const { return layout_; }
    // Two fields, of which steps read one and write the other.
    virtual double* field(int which) = 0;
    // The fields have new first values.
    virtual void first_values_set() {}
    // Reads field `from`, halo included, and writes the other one, halo included.
    virtual void step(int from) = 0;
    virtual Times times() const { return times_; }

  protected:
    template <typename Work>
    static void timed(double& seconds, Work&& work) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    // A message's tag names the face that its sender sends.
    static int tag_of(int dim, int side) { return 2 * dim + side; }

    const Block block_;
    Layout layout_;
    Times times_;
};

std::unique_ptr<Variant> make_mpi(const Domain& domain, const Block& block, bool blocking,
                                  mpi_support::Allocator allocator);
// Throws UsageError where there is no device, or one that does not map this process's memory.
std::unique_ptr<Variant> make_group(const Domain& domain, const Block& block);
std::unique_ptr<Variant> make_schedule(const Domain& domain, const Block& block, const std::string& library);
// Throws UsageError where regions of some rank have no device, or one that does not take part in MPI. Before
// MPI_Init, load_target_regions() must have been called.
std::unique_ptr<Variant> make_target(const Domain& domain, const Block& block);
void load_target_regions();

}  // namespace halo
