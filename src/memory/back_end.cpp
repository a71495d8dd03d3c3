#include "memory/host_memory.h"

namespace offpath::memory {

const char* to_string(BackEnd back_end) {
    switch (back_end) {
        case BackEnd::xgvmi:
            return "xgvmi";
        case BackEnd::map:
            return "map";
        case BackEnd::cma:
            return "cma";
        case BackEnd::staged:
            return "staged";
    }
    return "unknown";
}

Status HostMemory::copy_pieces(bool writes, std::span<const HostPiece> pieces, Completion* completion,
                               std::uint32_t& later) {
    later = 0;
    for (const HostPiece& piece : pieces) {
        const Status status = writes ? write(piece.range, 0, piece.local, piece.range.bytes, completion)
                                     : read(piece.range, 0, piece.local, piece.range.bytes, completion);
        if (is_error(status)) return status;
        if (status == Status::in_progress) ++later;
    }
    return Status::ok;
}

}  // namespace offpath::memory
