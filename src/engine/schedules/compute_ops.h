// ComputeOps: passes compute ops to the object that runs the session's kernels (teams/kernels.h), and
// continues when it answers. The engine never waits for a kernel.
//
// The buffers of a kernel that has begun belong to it until it returns. So an instance that fails meanwhile
// ends when the kernel does. Kernels that have not begun are taken back. Threads: the engine's.
#pragma once

#include "engine/schedules/instance.h"
#include "engine/teams/kernels.h"
#include "engine/teams/tenant.h"

#include <vector>

namespace offpath::engine {

class ComputeOps {
  public:
    ComputeOps(Schedules& home, Core& core) : home_(home), core_(core) {}

    void start(Instance& instance, schedule::OpId op);
    // The instance has failed. The caller calls Schedules::maybe_finish.
    static void kill(KernelRun& run);

  private:
    void over(KernelRun& run, Status status);

    Schedules& home_;
    Core& core_;
    std::vector<KernelBuffer> buffers_;  // used by start()
};

}  // namespace offpath::engine
