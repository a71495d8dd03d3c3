#include "schedule/op.h"

#include <fmt/format.h>

namespace offpath::schedule {

const char* to_string(OpKind kind) {
    switch (kind) {
        case OpKind::copy:
            return "copy";
        case OpKind::put:
            return "put";
        case OpKind::get:
            return "get";
        case OpKind::send:
            return "send";
        case OpKind::recv:
            return "recv";
        case OpKind::reduce:
            return "reduce";
        case OpKind::signal:
            return "signal";
        case OpKind::wait:
            return "wait";
        case OpKind::compute:
            return "compute";
    }
    return "unknown";
}

std::string describe(OpId id, const Op& op) {
    switch (op.kind) {
        case OpKind::put:
            return fmt::format("op {} (put to rank {})", id, op.peer);
        case OpKind::get:
            return fmt::format("op {} (get from rank {})", id, op.peer);
        case OpKind::send:
            return fmt::format("op {} (send to rank {}, tag {})", id, op.peer, op.tag);
        case OpKind::recv:
            return fmt::format("op {} (recv from rank {}, tag {})", id, op.peer, op.tag);
        case OpKind::signal:
            return fmt::format("op {} (signal {} of rank {})", id, op.tag, op.peer);
        case OpKind::wait:
            return fmt::format("op {} (wait for signal {})", id, op.tag);
        case OpKind::compute:
            return fmt::format("op {} (compute with kernel {})", id, op.tag);
        case OpKind::copy:
        case OpKind::reduce:
            break;
    }
    return fmt::format("op {} ({})", id, to_string(op.kind));
}

}  // namespace offpath::schedule
