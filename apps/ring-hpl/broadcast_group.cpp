#include <mpi.h>
#include <offpath/offpath.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "ring-hpl/broadcast.h"
#include "support/device_context.h"

namespace ring_hpl {

namespace {

using mpi_support::check;

constexpr std::uint32_t kPanelKey = 11;

class GroupBroadcast final : public PanelBroadcast {
  public:
    GroupBroadcast(const Shape& shape, std::size_t segment_bytes)
        : shape_(shape),
          segment_bytes_(segment_bytes),
          context_(mpi_support::attach_to_device()),
          groups_(shape.blocks(), nullptr) {
        check(offpath_team_world(context_, &team_), "offpath_team_world");
        for (void*& slot : slots_)
            check(offpath_mem_alloc(context_, panel_doubles(shape, 0) * sizeof(double), &slot),
                  "offpath_mem_alloc");
    }

    ~GroupBroadcast() override {
        for (offpath_group_h group : groups_) {
            if (group == nullptr) continue;
            offpath_group_wait(group);
            offpath_group_destroy(group);
        }
        for (void* slot : slots_)
            offpath_mem_free(context_, slot);
        offpath_finalize(context_);
    }

    double* buffer(int panel) override { return static_cast<double*>(slots_[panel % 2]); }

    void reclaim(int panel) override {
        if (panel >= 2) finish_group(panel - 2);
    }

    void start(int panel) override {
        if (shape_.ranks == 1) return;
        if (groups_[panel] == nullptr) groups_[panel] = record(panel);
        check(offpath_group_start(groups_[panel]), "offpath_group_start");
    }

    void progress(int) override {}

    void finish(int panel) override {
        if (shape_.owner(panel) != shape_.rank) finish_group(panel);
    }

  private:
    void finish_group(int panel) {
        if (groups_[panel] != nullptr) check(offpath_group_wait(groups_[panel]), "offpath_group_wait");
    }

    // The panel moves in segments: while a rank passes one segment on, the next one arrives.
    offpath_group_h record(int panel) {
        const int from_owner = (shape_.rank - shape_.owner(panel) + shape_.ranks) % shape_.ranks;
        const bool receives = from_owner > 0, sends = from_owner < shape_.ranks - 1;
        const auto left = static_cast<std::uint32_t>((shape_.rank + shape_.ranks - 1) % shape_.ranks);
        const auto right = static_cast<std::uint32_t>((shape_.rank + 1) % shape_.ranks);
        offpath_group_h group = nullptr;
        check(offpath_group_create(team_, &group), "offpath_group_create");
        char* data = static_cast<char*>(slots_[panel % 2]);
        const std::size_t bytes = panel_doubles(shape_, panel) * sizeof(double);
        for (std::size_t at = 0; at < bytes; at += segment_bytes_) {
            const std::size_t length = std::min(segment_bytes_, bytes - at);
            if (receives)
                check(offpath_group_recv(group, data + at, length, left, kPanelKey), "offpath_group_recv");
            if (receives && sends) check(offpath_group_barrier(group), "offpath_group_barrier");
            if (sends)
                check(offpath_group_send(group, data + at, length, right, kPanelKey), "offpath_group_send");
        }
        check(offpath_group_end(group), "offpath_group_end");
        return group;
    }

    const Shape shape_;
    const std::size_t segment_bytes_;
    offpath_context_h context_;
    offpath_team_h team_ = nullptr;
    std::array<void*, 2> slots_{};
    std::vector<offpath_group_h> groups_;  // one per panel, recorded at its first start
};

}  // namespace

std::unique_ptr<PanelBroadcast> make_group_broadcast(const Shape& shape, std::size_t segment_bytes) {
    return std::make_unique<GroupBroadcast>(shape, segment_bytes);
}

}  // namespace ring_hpl
