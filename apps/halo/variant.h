// What the variants share: one step of the simulation, the fields that it works on, and its times.
//
// A variant owns the memory of its fields. One thread uses it.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "halo/grid.h"
#include "halo/stencil.h"
#include "support/buffer.h"
#include "support/mpi_program.h"

namespace halo {

using mpi_support::World;

// Seconds since the variant was made. Work on the device counts as the device's time: if it computes the
// boundary, boundary_s is its time, which the host's total does not contain.
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
    // Returns one of the two fields. Each step reads one and writes the other.
    virtual double* field(int which) = 0;
    // Called when the fields have new first values.
    virtual void first_values_set() {}
    // Reads field `from` and writes the other one, both with their halo.
    virtual void step(int from) = 0;
    virtual Times times() const { return times_; }
    // The steps to take before steps are timed, so that connections exist, memory pages are present, and what
    // adapts to the machine has done so.
    virtual int steps_before() const { return 2; }
    // What only this variant reports, such as what it has adapted to: keys of the JSON line.
    virtual nlohmann::json more() const { return nlohmann::json::object(); }

  protected:
    template <typename Work>
    static void timed(double& seconds, Work&& work) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    const Block block_;
    Layout layout_;
    Times times_;
};

std::unique_ptr<Variant> make_mpi(const Domain& domain, const Block& block, bool blocking,
                                  mpi_support::Allocator allocator);
// Throw UsageError if there is no device, or if it does not map this process's memory.
std::unique_ptr<Variant> make_group(const Domain& domain, const Block& block);
std::unique_ptr<Variant> make_schedule(const Domain& domain, const Block& block, const std::string& library);
// Throws UsageError if the regions of some rank have no device, or one that does not take part in MPI.
// load_target_regions() must have been called before MPI_Init.
// `way` is "device", "host", or "faster": it measures both.
std::unique_ptr<Variant> make_target(const Domain& domain, const Block& block, const std::string& way);
void load_target_regions();

}  // namespace halo
