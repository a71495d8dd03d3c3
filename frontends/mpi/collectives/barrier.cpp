#include "collectives/common/call.h"

using namespace offpath::mpi;

namespace {

struct Barrier : Call {
    static constexpr Op op = Op::ibarrier;

    MPI_Comm comm;

    bool plausible() { return true; }
    bool prepare() { return true; }
    auto host_arguments() const { return std::tuple(comm); }

    offpath_status_t start(OffloadedRequest& operation) {
        return tell_device(operation, {DevicePart::Shape::barrier},
                           [&] { return offpath_ibarrier(device_team, &operation.device); });
    }
    void keep(Kept&) {}
};

}  // namespace

COLLECTIVE_OF_NOTHING(Barrier, Barrier, barrier, (MPI_Comm comm), (comm))
