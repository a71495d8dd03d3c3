// --variant group and schedule: the exchange is one group of offpath's C API, recorded once. In `schedule`
// the group also contains the device's kernels: one computes the boundary before the sends, and one copies
// into the halo after the receives. In each step one doorbell starts the group, and the host computes the
// interior meanwhile.
#include <mpi.h>
#include <offpath/offpath.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "halo/mpi_exchange.h"
#include "halo/variant.h"
#include "support/device_context.h"

namespace halo {

namespace {

using mpi_support::check;
using mpi_support::UsageError;

// The fields, the faces, and the message steps of a group. Their memory is mapped by the device, if it can
// map memory.
class OffpathVariant : public Variant {
  public:
    OffpathVariant(const Domain& domain, const Block& block)
        : Variant(domain, block), context_(mpi_support::attach_to_device()) {
        check(offpath_team_world(context_, &team_), "offpath_team_world");
        fields_ = {allocate(layout_.numbers()), allocate(layout_.numbers())};
        out_ = allocate(layout_.face_numbers());
        in_ = allocate(layout_.face_numbers());
    }
    ~OffpathVariant() override {
        for (offpath_group_h group : groups_)
            offpath_group_destroy(group);
        for (void* memory : allocations_)
            offpath_mem_free(context_, memory);
        offpath_finalize(context_);
    }

    double* field(int which) override { return fields_[which]; }

  protected:
    double* allocate(std::size_t numbers) {
        void* memory = nullptr;
        const std::size_t bytes = std::max<std::size_t>(numbers, 1) * sizeof(double);
        check(offpath_mem_alloc(context_, bytes, &memory), "offpath_mem_alloc");
        allocations_.push_back(memory);
        std::memset(memory, 0, bytes);
        return static_cast<double*>(memory);
    }
    offpath_group_h new_group() {
        offpath_group_h group = nullptr;
        check(offpath_group_create(team_, &group), "offpath_group_create");
        groups_.push_back(group);
        return group;
    }
    // Calls visit(dim, side) for each side with a neighbour.
    template <typename Visit>
    void for_sides(Visit&& visit) const {
        for (int dim = 0; dim < 3; ++dim)
            for (int side = 0; side < 2; ++side)
                if (layout_.has(dim, side)) visit(dim, side);
    }
    void record_send(offpath_group_h group, int dim, int side) {
        check(offpath_group_send(group, out_ + layout_.face_begin(dim, side),
                                 layout_.face(dim) * sizeof(double),
                                 static_cast<std::uint32_t>(block_.neighbour[dim][side]),
                                 static_cast<std::uint32_t>(tag_of(dim, side))),
              "offpath_group_send");
    }
    void record_recv(offpath_group_h group, int dim, int side) {
        check(
            offpath_group_recv(group, in_ + layout_.face_begin(dim, side), layout_.face(dim) * sizeof(double),
                               static_cast<std::uint32_t>(block_.neighbour[dim][side]),
                               static_cast<std::uint32_t>(tag_of(dim, 1 - side))),
            "offpath_group_recv");
    }

    offpath_context_h context_;
    offpath_team_h team_ = nullptr;
    std::array<double*, 2> fields_{};
    double *out_ = nullptr, *in_ = nullptr;

  private:
    std::vector<void*> allocations_;
    std::vector<offpath_group_h> groups_;
};

class GroupVariant final : public OffpathVariant {
  public:
    GroupVariant(const Domain& domain, const Block& block)
        : OffpathVariant(domain, block), group_(new_group()) {
        for_sides([&](int dim, int side) { record_recv(group_, dim, side); });
        for_sides([&](int dim, int side) { record_send(group_, dim, side); });
        check(offpath_group_end(group_), "offpath_group_end");
    }

    void step(int from) override {
        timed(times_.boundary_s, [&] {
            step_boundary(layout_, fields_[from], fields_[1 - from]);
            pack(layout_, Layer::face, fields_[1 - from], out_);
        });
        timed(times_.exchange_s, [&] { check(offpath_group_start(group_), "offpath_group_start"); });
        timed(times_.interior_s, [&] { step_interior(layout_, fields_[from], fields_[1 - from]); });
        timed(times_.exchange_s, [&] {
            check(offpath_group_wait(group_), "offpath_group_wait");
            unpack(layout_, Layer::halo, in_, fields_[1 - from]);
        });
    }

  private:
    offpath_group_h group_;
};

class ScheduleVariant final : public OffpathVariant {
  public:
    ScheduleVariant(const Domain& domain, const Block& block, const std::string& library)
        : OffpathVariant(domain, block), seconds_(allocate(1)) {
        // The host writes the interior while the device writes the boundary of the same field, so the device
        // must not work on copies.
        offpath_back_end_t back_end{};
        offpath_progress_t progress{};
        check(
            offpath_mem_query(context_, fields_[0], layout_.numbers() * sizeof(double), &back_end, &progress),
            "offpath_mem_query");
        if (!mpi_support::all_ranks_agree(back_end == OFFPATH_BACK_END_MAP))
            throw UsageError("--variant schedule needs devices that map this node's memory: --dpu local");
        const bool loaded =
            offpath_kernel_load(context_, library.c_str(), "halo_boundary", &boundary_) == OFFPATH_OK &&
            offpath_kernel_load(context_, library.c_str(), "halo_unpack", &unpack_) == OFFPATH_OK;
        if (!mpi_support::all_ranks_agree(loaded))
            throw UsageError("the device cannot load the kernels of " + library + "; see --kernels");
        for (int from = 0; from < 2; ++from)
            groups_of_[from] = record(fields_[from], fields_[1 - from]);
    }

    void step(int from) override {
        timed(times_.exchange_s,
              [&] { check(offpath_group_start(groups_of_[from]), "offpath_group_start"); });
        timed(times_.interior_s, [&] { step_interior(layout_, fields_[from], fields_[1 - from]); });
        timed(times_.exchange_s, [&] { check(offpath_group_wait(groups_of_[from]), "offpath_group_wait"); });
    }
    Times times() const override {
        Times found = times_;
        found.boundary_s = *seconds_;
        return found;
    }

  private:
    offpath_group_h record(double* old, double* next) {
        offpath_group_h group = new_group();
        const std::size_t field = layout_.numbers() * sizeof(double);
        const std::size_t faces = layout_.face_numbers() * sizeof(double);
        std::uint32_t receives = 0, steps = 0;
        for_sides([&](int dim, int side) {
            record_recv(group, dim, side);
            ++receives;
        });
        if (receives > 0) {
            const offpath_kernel_buffer_t computed[] = {{old, field, OFFPATH_IN},
                                                        {next, field, OFFPATH_INOUT},
                                                        {out_, faces, OFFPATH_OUT},
                                                        {seconds_, sizeof(double), OFFPATH_INOUT}};
            check(offpath_group_compute(group, boundary_, &layout_, sizeof layout_, computed, 4),
                  "offpath_group_compute");
            steps = receives + 1;
            for_sides([&](int dim, int side) {
                record_send(group, dim, side);
                check(offpath_group_depend(group, steps++, receives), "offpath_group_depend");
            });
            const offpath_kernel_buffer_t unpacked[] = {{in_, faces, OFFPATH_IN},
                                                        {next, field, OFFPATH_INOUT}};
            check(offpath_group_compute(group, unpack_, &layout_, sizeof layout_, unpacked, 2),
                  "offpath_group_compute");
            for (std::uint32_t receive = 0; receive < receives; ++receive)
                check(offpath_group_depend(group, steps, receive), "offpath_group_depend");
        }
        check(offpath_group_end(group), "offpath_group_end");
        return group;
    }

    double* const seconds_;  // time in which the device computed boundaries
    offpath_kernel_h boundary_ = nullptr, unpack_ = nullptr;
    std::array<offpath_group_h, 2> groups_of_{};  // by the field that the step reads
};

}  // namespace

std::unique_ptr<Variant> make_group(const Domain& domain, const Block& block) {
    return std::make_unique<GroupVariant>(domain, block);
}

std::unique_ptr<Variant> make_schedule(const Domain& domain, const Block& block, const std::string& library) {
    return std::make_unique<ScheduleVariant>(domain, block, library);
}

}  // namespace halo
