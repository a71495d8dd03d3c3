// Compute ops. Operands in memory without a pointer are copied here first and the result back, by
// local transfers.
#include "engine/reductions/kernels.h"
#include "engine/schedules/schedules.h"

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;

// Steps: 0 load src, 1 load dst, 2 run, 3 store dst, 4 over. A step that needs a transfer returns and is
// continued when that is done.
void Schedules::kernel_step(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    OpRun& run = instance.runs[id];
    const Location src = instance.locate(op.src);
    const Location dst = instance.locate(op.dst);

    auto copy = [&](const Location& from, const Location& to) {
        run.send = new_send(instance, id, from, op.bytes);
        core_.mover.begin_copy(*run.send, to);
    };

    switch (run.kernel_step++) {
        case 0:
            if (src.pointer == nullptr && op.bytes > 0) {
                run.kernel_src.resize(op.bytes);
                return copy(src, Location::at_pointer(run.kernel_src.data()));
            }
            return kernel_step(instance, id);
        case 1:
            if (dst.pointer == nullptr && op.bytes > 0) {
                run.kernel_dst.resize(op.bytes);
                return copy(dst, Location::at_pointer(run.kernel_dst.data()));
            }
            return kernel_step(instance, id);
        case 2: {
            const std::byte* from = src.pointer != nullptr ? src.pointer : run.kernel_src.data();
            std::byte* to = dst.pointer != nullptr ? dst.pointer : run.kernel_dst.data();
            const Status status = run_kernel(op.tag, from, to, op.bytes);
            if (is_error(status)) return fail(instance, status, true);
            return kernel_step(instance, id);
        }
        case 3:
            if (dst.pointer == nullptr && op.bytes > 0)
                return copy(Location::at_pointer(run.kernel_dst.data()), dst);
            return kernel_step(instance, id);
        default:
            return op_done(instance, id);
    }
}

}  // namespace offpath::engine
