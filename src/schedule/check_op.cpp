#include "schedule/check_op.h"

#include "schedule/fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::schedule {
namespace {

class OpCheck {
  public:
    OpCheck(const Schedule& schedule, const Op& op)
        : schedule_(schedule), op_(op), fields_(fields_of(op.kind)) {}

    std::string run() const {
        if (!fields_.known) return fmt::format("kind {} is unknown", static_cast<int>(op_.kind));
        for (std::string problem : {unused(), peer(), range(op_.src, fields_.src),
                                    range(op_.dst, fields_.dst), overlap(), reduction(), count(), call()})
            if (!problem.empty()) return problem;
        return {};
    }

  private:
    std::string unused() const {
        const BufferRef nowhere;
        if ((!fields_.peer && op_.peer != no_peer) || (!fields_.tag && op_.tag != 0) ||
            (!fields_.bytes && op_.bytes != 0) || (!fields_.src && op_.src != nowhere) ||
            (!fields_.dst && op_.dst != nowhere) ||
            (!fields_.reduction && (op_.type != DataType::none || op_.reduction != Reduction::none)))
            return "sets a field that this kind of op does not use";
        return {};
    }

    std::string peer() const {
        if (fields_.peer && op_.peer >= schedule_.team_size())
            return fmt::format("rank {} is not in the team of {}", op_.peer, schedule_.team_size());
        return {};
    }

    std::string range(const BufferRef& ref, bool used) const {
        return used ? range(ref, op_.bytes) : std::string();
    }

    std::string range(const BufferRef& ref, std::uint64_t bytes) const {
        if (bytes > max_slot_bytes || ref.offset > max_slot_bytes - bytes)
            return fmt::format("{} bytes at offset {} are beyond the limit of {} bytes for a slot", bytes,
                               ref.offset, max_slot_bytes);
        if (ref.slot >= schedule_.slots().size())
            return fmt::format("slot {} does not exist, there are {}", ref.slot, schedule_.slots().size());
        const std::uint64_t size = schedule_.slots()[ref.slot].bytes;
        if (ref.offset + bytes > size)
            return fmt::format("range [{}, {}) leaves slot {} of {} bytes", ref.offset, ref.offset + bytes,
                               ref.slot, size);
        return {};
    }

    std::string overlap() const {
        if ((op_.kind != OpKind::copy && op_.kind != OpKind::reduce) || op_.src.slot != op_.dst.slot)
            return {};
        const std::uint64_t distance =
            std::max(op_.src.offset, op_.dst.offset) - std::min(op_.src.offset, op_.dst.offset);
        if (distance >= op_.bytes || (op_.kind == OpKind::reduce && distance == 0)) return {};
        return fmt::format("source at {} and destination at {} of slot {} overlap over {} bytes",
                           op_.src.offset, op_.dst.offset, op_.src.slot, op_.bytes);
    }

    std::string reduction() const {
        if (!fields_.reduction) return {};
        if (!defined(op_.type, op_.reduction))
            return fmt::format("reduction {} of data type {} is not defined", static_cast<int>(op_.reduction),
                               static_cast<int>(op_.type));
        if (op_.bytes % size_of(op_.type) != 0)
            return fmt::format("{} bytes are no whole number of elements of {} bytes", op_.bytes,
                               size_of(op_.type));
        return {};
    }

    std::string count() const {
        if (op_.kind == OpKind::wait && op_.bytes == 0) return "waits for a count of 0, the least is 1";
        return {};
    }

    std::string call() const {
        if (!fields_.call) return {};
        if (op_.tag >= schedule_.calls().size())
            return fmt::format("call {} does not exist, there are {}", op_.tag, schedule_.calls().size());
        const KernelCall& call = schedule_.calls()[op_.tag];
        if (call.arguments.size() > max_call_arguments || call.buffers.size() > max_call_buffers)
            return fmt::format("{} bytes of arguments and {} buffers, the limits are {} and {}",
                               call.arguments.size(), call.buffers.size(), max_call_arguments,
                               max_call_buffers);
        for (const CallBuffer& buffer : call.buffers) {
            if (std::string wrong = range(buffer.place, buffer.bytes); !wrong.empty()) return wrong;
            if (schedule_.slots()[buffer.place.slot].kind != SlotKind::user)
                return fmt::format("a kernel cannot use slot {}, which is scratch", buffer.place.slot);
            if (buffer.access < Access::in || buffer.access > Access::inout)
                return fmt::format("access {} is not defined", static_cast<int>(buffer.access));
        }
        return {};
    }

    const Schedule& schedule_;
    const Op& op_;
    const Fields fields_;
};

}  // namespace

std::string check_op(const Schedule& schedule, const Op& op) {
    return OpCheck(schedule, op).run();
}

}  // namespace offpath::schedule
