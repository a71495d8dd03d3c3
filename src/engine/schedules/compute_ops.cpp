#include "engine/schedules/compute_ops.h"

#include "base/log.h"
#include "engine/schedules/schedules.h"

namespace offpath::engine {

using schedule::OpId;

void ComputeOps::start(Instance& instance, OpId id) {
    const schedule::Schedule& schedule = instance.plan->schedule();
    const std::uint64_t number = schedule.ops()[id].tag;
    const schedule::KernelCall& call = schedule.calls()[number];
    Kernels* const kernels = instance.team->session->kernels;
    if (kernels == nullptr) {
        log::error(Code::kernel,
                   "op {} of start {} of team {:x} needs kernel {}, and its rank has loaded none", id,
                   instance.sequence, instance.team->id, call.kernel);
        return home_.fail(instance, Status::unsupported, true);
    }
    buffers_.clear();
    for (const schedule::CallBuffer& buffer : call.buffers) {
        const memory::HostRange& slot = instance.slots[buffer.place.slot].range;
        buffers_.push_back({{slot.region, slot.address + buffer.place.offset, buffer.bytes},
                            static_cast<std::uint32_t>(buffer.access)});
    }
    std::unique_ptr<KernelRun>& run = instance.kernels[number];
    if (run == nullptr) run = std::make_unique<KernelRun>();
    run->function = [](Completion* completion, Status status) {
        KernelRun& done = *static_cast<KernelRun*>(completion);
        done.home->over(done, status);
    };
    run->home = this;
    run->instance = &instance;
    run->op = id;
    const Status status = kernels->run(call.kernel, buffers_, call.arguments, run.get());
    if (status != Status::in_progress) {
        log::error(Code::kernel, "op {} of start {} of team {:x} needs kernel {}: {}", id, instance.sequence,
                   instance.team->id, call.kernel, to_string(status));
        return home_.fail(instance, is_error(status) ? status : Status::protocol, true);
    }
    run->outstanding = true;
    ++instance.holds;
}

void ComputeOps::kill(KernelRun& run) {
    if (!run.outstanding || !run.instance->team->session->kernels->take_back(&run)) return;
    run.outstanding = false;
    --run.instance->holds;
}

void ComputeOps::over(KernelRun& run, Status status) {
    if (core_.peers.closed()) return;
    Instance& instance = *run.instance;
    run.outstanding = false;
    --instance.holds;
    if (instance.failing) return home_.maybe_finish(instance);
    if (is_error(status)) return home_.fail(instance, status, true);
    home_.op_done(instance, run.op);
}

}  // namespace offpath::engine
